import { after, backoff, locate, request, usable, warn } from './page.js'
import { anonymousId, saveForReload, savedForReload } from './store.js'
import { tabsOf } from './tabs.js'

const counted = new Set() // the players that have said that they play, and not that they left
let resumable = [] // who was counted when this page was reloaded: address and viewer
let departed // who was counted when this page was left
let parked // those of a page that was left and may come back from the browser's cache; also tells that it was left

// trackPlayer is for players of any kind: the caller says when it plays, pauses and ends.
export const trackPlayer = (options) => {
  const { videoId, viewerId, endpoint, token, kind } = options ?? {}
  const known = usable(videoId)
  if (!known) warn('not a video id:', videoId)
  const named = `${viewerId ?? ''}` || undefined
  const anonymous = !named && !token
  const viewer = anonymous ? anonymousId() : named // without one, it is the token's subject
  const url = locate(endpoint, (kind || 'video') + 's/' + (known && encodeURIComponent(videoId)) + '/')
  const tabs = tabsOf(url, viewer)
  const name = url + ' ' + viewer

  let playing = false
  let busy = false // a play is under way
  let secret // the token sent last
  let refused = NaN // the token that the server did not take; this is none
  let timer
  let seen = 0 // the viewer's last play by the server's clock
  let last, wait, failures // when the last beat was sent, how long after it the next is due, how many have failed
  const reset = () => (last = wait = failures = 0)
  reset()

  const message = (more) => JSON.stringify({ viewer_id: viewer, token: secret, ...more })

  // A body of text is sent as text/plain, which needs no preflight. keepalive lets it outlive the page.
  const post = (what, body) => request(url + what, { method: 'POST', body, keepalive: true })

  const ask = async () => (secret = (typeof token == 'function' ? await token() : token) || undefined)

  // say posts a play. A token that was refused is not sent again: a new one is asked for, once now, and then with every
  // further beat.
  const say = async () => {
    let answer
    for (let n = 2; n && (await ask()) !== refused; n--) {
      // Who plays on within a minute of a reload has not started anew.
      const resumed = resumable.includes(name) && performance.now() < 60_000
      answer = await post('play', message(resumed && { resumed }))
      if (answer.status != 401) break
      refused = secret
    }
    return answer ?? { status: 401 }
  }

  const beat = async () => {
    busy = true
    last = Date.now()
    tabs.stay(30_000, seen)
    try {
      const answer = await say()
      if (answer.ok) {
        const { recorded_at, beat_after } = await answer.json()
        seen = Math.max(seen, recorded_at || 0)
        wait = Math.max(1, beat_after || 150) * 1000
        failures = 0
        resumable = resumable.filter((other) => other != name)
        tabs.stay(2 * wait + 5000, seen)
      } else if (answer.status < 500 && ![401, 408, 429].includes(answer.status)) {
        wait = Infinity // no use in trying again for this play
        warn(videoId, 'is not counted: answered', answer.status)
      } else throw answer
    } catch (why) {
      last = Date.now()
      wait = backoff(failures++, why)
      warn(videoId, 'is not counted, trying again:', why?.status || why)
    } finally {
      busy = false
      if (counted.has(player)) tick()
      else if (seen) depart() // it was left in the meantime
    }
  }

  // tick beats when it is time to. Timers of background tabs come late and clocks are set, so it goes by how long ago
  // the last beat was, and anybody may call it at any time.
  const tick = () => {
    clearTimeout(timer)
    if (!playing || busy) return
    const left = wait - Math.abs(Date.now() - last)
    if (left <= 0) beat()
    else timer = after(left, tick)
  }

  // depart tells the server, unless the viewer watches in another tab. What it sends is guarded by the last play, so
  // that a viewer seen elsewhere since stays; but a play that may still be under way has no time yet, and only an
  // anonymous viewer is sure not to be seen elsewhere.
  const depart = () => {
    const unsure = busy && anonymous
    const others = tabs.others(seen)
    if (others.stay) tabs.stay(-1, others.seen) // the last to go needs our last play
    else {
      tabs.end()
      if (others.seen || unsure) send(message({ recorded_at: unsure ? undefined : others.seen }))
    }
    seen = 0
  }

  const send = (leave) => {
    try {
      navigator.sendBeacon?.(url + 'leave', leave) || post('leave', leave).catch(() => {})
    } catch {} // an extension's stand-in for sendBeacon: the viewer goes when the window has passed
  }

  const player = {
    play() {
      if (!known || parked) return
      counted.add(player)
      playing = true
      tick()
    },
    pause() {
      playing = false
      clearTimeout(timer)
    },
    leave() {
      player.pause()
      if (!counted.delete(player)) return
      depart()
      reset() // so that a play after this counts at once
    },
    park() {
      const played = playing
      if (seen) departed.push(name)
      player.leave()
      return played
    },
    resume: () => player.play(),
  }
  return player
}

export const start = () => {
  resumable = savedForReload()
  addEventListener('pagehide', () => {
    departed = []
    parked = [...counted].filter((player) => player.park())
    saveForReload(departed)
  })
  addEventListener('pageshow', () => {
    const back = parked
    parked = undefined
    back?.forEach((player) => player.resume())
  })
}
