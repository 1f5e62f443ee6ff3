import { after, backoff, locate, request, usable } from './page.js'

const counts = new Map() // the page's <viewer-count> elements → what shows their number

let timer
let failures = 0
let refreshed = 0 // when the last refresh began

const refreshIn = (ms) => {
  clearTimeout(timer)
  timer = after(ms, refresh)
}

// refreshSoon is for elements that appear: those of one moment share a request, and one that follows waits a second.
const refreshSoon = () => refreshIn(Math.max(20, refreshed + 1000 - Date.now()))

// refresh asks for all counts of the page and plans the next time. A page that is hidden or has no counts asks when that
// changes.
const refresh = async () => {
  if (document.hidden || !counts.size) return
  refreshed = Date.now()
  const every = 1000 * Math.min(...[...counts.keys()].map((count) => Math.max(1, count.getAttribute('refresh') || 15) || 15))
  const answers = await Promise.all(batches().map(ask))
  const failure = answers.find((why) => why)
  failures = failure ? failures + 1 : 0
  refreshIn(failure ? Math.max(every, backoff(failures, failure)) : every)
}

// batches are the requests for all counts: one, unless there are more than the server takes (200), the URL gets too long
// for common proxies (8 KB), or elements name other servers or kinds.
const batches = () => {
  const all = []
  const open = {} // endpoint → its last batch
  for (const [count, show] of counts) {
    const id = count.getAttribute('video-id')
    if (!usable(id)) {
      show('unknown')
      continue
    }
    const kind = count.getAttribute('kind')
    const url = locate(count.getAttribute('endpoint'), 'viewers?' + (kind ? `kind=${encodeURIComponent(kind)}&` : ''))
    let batch = open[url]
    if (!batch || batch.shows.length == 200 || batch.url.length > 6000) all.push((open[url] = batch = { url, shows: [] }))
    batch.url += (batch.shows.length ? '&' : '') + 'video_id=' + encodeURIComponent(id)
    batch.shows.push((state, viewers) => {
      const changed = id != count.getAttribute('video-id') // in the meantime
      const forgiven = state == 'offline' && !failures && count.viewers != null // one lost refresh is no outage
      if (!changed && !forgiven) show(state, viewers)
    })
  }
  return all
}

// ask shows a batch's answer, and returns what failed, if anything did.
const ask = async ({ url, shows }) => {
  try {
    const answer = await request(url)
    if (!answer.ok) throw answer
    const { counts, as_of } = await answer.json()
    shows.forEach((show, i) => show(as_of ? 'known' : 'unknown', counts[i].viewers))
  } catch (why) {
    shows.forEach((show) => show('offline'))
    return why
  }
}

// A content security policy that forbids <style> allows this.
const styles = () => {
  try {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(`
      :host { display: inline-block; min-width: var(--viewer-count-width, 3ch); color: var(--viewer-count-color, inherit);
        font-variant-numeric: tabular-nums; text-align: end }
      :host([hidden]) { display: none }
      :host(:not([state=known])) [part=number] { opacity: var(--viewer-count-dim, .6) }
      [part=note] { position: absolute; width: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }`)
    return [sheet]
  } catch {
    return [] // an old browser: the page's own style then
  }
}

// What a screen reader says where there is no number.
const words = { unknown: ['unknown', '未知'], offline: ['offline', '离线'] }

const format = (viewers, lang) => {
  try {
    return viewers.toLocaleString(lang)
  } catch {
    return viewers // lang is no language
  }
}

export const start = () => {
  const adopted = styles()

  class ViewerCount extends HTMLElement {
    static observedAttributes = ['video-id', 'kind', 'endpoint']
    #viewers = null
    #state // the attribute of a clone is another's

    constructor() {
      super()
      const shadow = this.attachShadow({ mode: 'open' })
      shadow.adoptedStyleSheets = adopted
      for (const part of ['number', 'note']) {
        const span = document.createElement('span')
        span.setAttribute('part', part)
        shadow.append(span)
      }
    }

    get viewers() {
      return this.#viewers
    }

    connectedCallback() {
      if (!this.hasAttribute('aria-live')) this.setAttribute('aria-live', 'polite')
      counts.set(this, (state, viewers) => this.#show(state, viewers))
      if (!this.#state) this.#show('loading') // and not when it was only moved
      refreshSoon()
    }

    disconnectedCallback() {
      counts.delete(this)
    }

    attributeChangedCallback(name, old, value) {
      if (old == value || !counts.has(this)) return
      this.#show('loading')
      refreshSoon()
    }

    #show(state, viewers) {
      if (state != 'known') viewers = null
      if (viewers === this.#viewers && state == this.#state) return
      this.#viewers = viewers
      this.setAttribute('state', (this.#state = state))
      const lang = this.closest('[lang]')?.lang || navigator.language
      const [number, note] = this.shadowRoot.children
      number.setAttribute('aria-hidden', viewers == null)
      number.textContent = viewers == null ? '–' : format(viewers, lang)
      note.textContent = words[state]?.[+/^zh/i.test(lang)] ?? ''
      this.dispatchEvent(new Event('change'))
    }
  }

  if (!customElements.get('viewer-count')) customElements.define('viewer-count', ViewerCount)
  document.addEventListener('visibilitychange', () => document.hidden || refreshSoon())
}
