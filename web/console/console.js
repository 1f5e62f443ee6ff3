import { Chart } from './chart.js'
import { listen, refreshVideo } from './dialogs.js'
import { $, put } from './dom.js'
import { nameCharts, show, showHistory, showPeaks, showPlays, showViewers } from './figures.js'
import { timeOf } from './format.js'
import { locate, showKinds } from './kinds.js'
import { showLeader, showPasses, showRates, showRedis, showSettings, showTop } from './tables.js'
import { text, translate } from './text.js'
import { showWarnings } from './warnings.js'

const every = 2000 // milliseconds

let chart
let updated = 0 // when, by this machine's clock
const points = { at: [], viewers: [] } // all that this page was told of the history

// remember adds the points that are new, and drops those older than span, in milliseconds.
const remember = ({ at, viewers }, span) => {
  points.at.push(...at)
  points.viewers.push(...viewers)
  const old = points.at.findIndex((ms) => ms > points.at.at(-1) - span)
  points.at.splice(0, old)
  points.viewers.splice(0, old)
}

const showAll = (data) => {
  put($('program'), `${data.program} ${data.version}`)
  showKinds(data.kinds, data.kind)
  showWarnings(data.warnings)
  showViewers('viewers', data.viewers, data.now)
  show('videos', { value: data.viewers.videos })
  show('online', data.online)
  show('uniques', data.uniques)
  showPeaks('peak', data.peaks)
  showPlays('plays', data.plays)
  nameCharts(data.history_ms)
  if (data.history.value) remember(data.history.value, data.history_ms)
  showHistory(chart, points.at.length ? { value: points } : data.history, data.interval_ms, text.chartEmpty)
  showTop(data.top, data.viewers.as_of)
  showLeader(data.leader, data.passes, data.now)
  showPasses(data.passes)
  showRates(data.rates)
  showRedis(data.redis)
  showSettings(data.settings)
}

const refresh = async () => {
  const answer = await fetch(locate('data', { since: points.at.at(-1) ?? 0 }), { signal: AbortSignal.timeout(10000) })
  if (!answer.ok) throw new Error(answer.status)
  const data = await answer.json()
  showAll(data)
  await refreshVideo(data.interval_ms)
}

const poll = async () => {
  if (!document.hidden) {
    try {
      await refresh()
      updated = Date.now()
      put($('updated'), text.updated(timeOf(updated)))
      $('offline').hidden = true
    } catch {
      put($('offline'), text.offline(updated && timeOf(updated)))
      $('offline').hidden = false
    }
  }
  setTimeout(poll, every)
}

translate()
chart = new Chart($('chart'), $('chart-name'))
listen()
poll()
