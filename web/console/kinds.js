// The address says which kind of videos is shown, ?kind=live; without one it is the first.
import { $ } from './dom.js'
import { text } from './text.js'

const asked = new URLSearchParams(location.search).get('kind')

// locate is where something of that kind is asked for.
export const locate = (what, parameters) => `/console/${what}?${new URLSearchParams({ ...parameters, ...(asked != null && { kind: asked }) })}`

const linkTo = (name, shown) => {
  const link = document.createElement('a')
  link.href = `?kind=${encodeURIComponent(name)}`
  link.textContent = name
  if (shown) link.setAttribute('aria-current', 'page')
  return link
}

// showKinds offers the others, where there are any. They do not change while the program runs.
export const showKinds = (kinds, shown) => {
  const list = $('kinds')
  if (!kinds || list.childElementCount) return
  list.setAttribute('aria-label', text.kinds)
  list.append(...kinds.map((name) => linkTo(name, name == shown)))
  list.hidden = false
}
