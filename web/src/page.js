// What holds for the whole page. endpoint is the server that counts.
export const page = { endpoint: '' }

let warned = false

// warn tells the page's author, once: what fails will fail again, and a console is not ours to fill.
export const warn = (...why) => {
  if (!warned) console.warn('Headcount:', ...why)
  warned = true
}

// locate is the URL of a route of the server.
export const locate = (endpoint, route) =>
  String(endpoint || page.endpoint || location.origin).replace(/\/+$/, '') + '/v1/' + route

// usable tells whether the server takes a video id. It refuses others, and a whole batch for one of them.
export const usable = (id) =>
  id != null && /^(?!count:)[^\p{Cc}\p{Cs}]+$/u.test(id) && new TextEncoder().encode(id).length <= 256

// after is setTimeout, which takes a wait of more than 2^31-1 ms for none.
export const after = (ms, then) => setTimeout(then, Math.min(ms, 2 ** 31 - 1))

// request is fetch, without cookies, and given up in time.
export const request = (url, options) =>
  fetch(url, { credentials: 'omit', signal: AbortSignal.timeout?.(20_000), ...options })

// backoff is how long to wait after a failure, in ms: seconds that double up to five minutes, spread so that players
// that failed together do not come back together; or what the server asks for, and a little more for the same reason. why
// is its answer, if there was one, or whatever else has been thrown.
export const backoff = (failures, why) => {
  const own = Math.min(300_000, 1000 * 2 ** failures) * (0.5 + Math.random())
  return Math.max(own, why?.headers?.get?.('Retry-After') * (1000 + 250 * Math.random()) || 0)
}
