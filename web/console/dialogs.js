// The address says what is open: #video=<id> or #runbook=<entry>. So links open it, and the
// browser's buttons work.
import { Chart } from './chart.js'
import { $, put } from './dom.js'
import { show, showHistory, showPeaks, showPlays, showViewers } from './figures.js'
import { locate } from './kinds.js'
import { elementsOf } from './markdown.js'
import { text } from './text.js'

let chart
let interval = 0

const idOf = (kind) => {
  const [name, value] = location.hash.slice(1).split('=', 2)
  if (name != kind || !value) return ''
  try {
    return decodeURIComponent(value)
  } catch {
    return '' // not one of ours
  }
}

// refreshVideo shows the numbers of the video that is open, if one is.
export const refreshVideo = async (intervalMs = interval) => {
  interval = intervalMs
  const id = idOf('video')
  if (!id) return
  const answer = await fetch(locate('video', { id }), { signal: AbortSignal.timeout(10000) })
  if (!answer.ok) throw new Error(answer.status)
  const video = await answer.json()
  if (idOf('video') != id) return // another one by now
  showViewers('video-viewers', video.viewers, video.now)
  show('video-uniques', video.uniques)
  showPeaks('video-peak', video.peaks)
  showPlays('video-plays', video.plays)
  showHistory(chart, video.history, interval, text.videoChartEmpty)
}

const blank = () => {
  for (const element of $('video').querySelectorAll('dd:not([data-text])')) element.textContent = ''
  chart.say('')
}

const openVideo = async (id) => {
  put($('video-name'), id)
  chart ??= new Chart($('video-chart'), $('video-chart-name'))
  blank()
  $('video').showModal()
  await refreshVideo().catch(() => {}) // the next poll tries again
}

// showEntry shows an entry, which is in English, and says so to readers of another language.
const showEntry = (elements) => {
  $('runbook-text').replaceChildren(...elements)
  put($('runbook-note'), elements.length ? text.entryNote : '')
}

const openRunbook = async (entry) => {
  showEntry([])
  if (!$('runbook').open) $('runbook').showModal()
  const answer = await fetch(`/console/runbook?entry=${encodeURIComponent(entry)}`).catch(() => null)
  showEntry(answer?.ok ? elementsOf(await answer.text()) : [])
  if (!answer?.ok) put($('runbook-note'), text.noEntry)
}

const route = () => {
  const [video, entry] = [idOf('video'), idOf('runbook')]
  if ($('video').open) $('video').close()
  if (!entry && $('runbook').open) $('runbook').close()
  if (video) openVideo(video)
  else if (entry) openRunbook(entry)
}

export const listen = () => {
  addEventListener('hashchange', route)
  for (const kind of ['video', 'runbook']) {
    $(kind).addEventListener('close', () => {
      if (idOf(kind)) history.replaceState(null, '', location.pathname + location.search)
    })
  }
  route()
}
