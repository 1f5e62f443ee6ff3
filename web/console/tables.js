import { $, put, rows } from './dom.js'
import { ago, bytes, dateOf, duration, number, percent, rate, timeOf } from './format.js'
import { text } from './text.js'

const body = (id) => $(id).tBodies[0]
const right = (said, bad = false) => ({ text: said, className: bad ? 'number bad' : 'number' })
const name = (said) => ({ text: said, header: true })
const sum = (rates, outcomes) => outcomes.reduce((n, outcome) => n + (rates[outcome] ?? 0), 0)

// Links of the top list by video, kept so that a reader or a keyboard does not lose its place.
const links = new Map()

const linkTo = (videoId) => {
  if (!links.has(videoId)) {
    const link = document.createElement('a')
    link.href = `#video=${encodeURIComponent(videoId)}`
    link.textContent = videoId
    links.set(videoId, link)
  }
  return links.get(videoId)
}

const topNote = ({ off, failed, value }, asOf) => {
  if (off) return text.topOff
  if (failed) return text.topUnknown
  if (value.length) return ''
  return asOf == null ? text.topNoPass : text.topEmpty
}

// showTop tells an empty list of a pass from one that no pass has made of late: asOf is null then.
export const showTop = (figure, asOf) => {
  const list = figure.value ?? []
  put($('top-note'), topNote(figure, asOf))
  $('top').hidden = !list.length
  const said = JSON.stringify(list)
  if (body('top').said == said) return
  body('top').said = said
  const focused = document.activeElement
  rows(body('top'), list.map(({ viewers }, i) => [right(number(i + 1)), '', right(number(viewers))]))
  body('top').said = said
  list.forEach(({ video_id: videoId }, i) => body('top').rows[i].cells[1].append(linkTo(videoId)))
  for (const videoId of links.keys()) if (!links.get(videoId).isConnected) links.delete(videoId)
  if (focused.isConnected && focused != document.activeElement) focused.focus()
}

export const showLeader = ({ holder, since, held }, { failed }, now) => {
  if (failed || now == null) return put($('leader'), text.leaderUnknown)
  const leads = holder && (held == false ? text.ledLast(holder) : text.leads(holder, dateOf(since), ago(now - since)))
  put($('leader'), leads || text.nobodyLed)
}

export const showPasses = (figure) => {
  rows(
    body('passes'),
    (figure.value ?? []).map((p) => [
      timeOf(p.started_at),
      right(duration(p.took_ms)),
      right(p.errors ? '–' : number(p.viewers)),
      right(number(p.read)),
      right(number(p.skipped)),
      right(number(p.evicted)),
      right(number(p.errors), p.errors > 0),
      p.holder,
    ]),
  )
}

export const showRates = (rates) => {
  put($('rates-note'), !rates ? text.elsewhere : rates.seconds ? '' : text.ratesSoon)
  $('rates').hidden = !rates?.seconds
  if (!rates?.seconds) return
  const { plays, leaves, lookups, queue } = rates
  const failed = sum(plays, ['rejected', 'full', 'busy', 'abandoned', 'failed'])
  const stale = sum(lookups, ['stale', 'failed'])
  const lines = [
    [name(text.playsRecorded), right(rate(plays.recorded ?? 0))],
    [name(text.playsOther), right(rate(failed), failed > 0)],
    [name(text.leaves), right(rate(leaves.recorded ?? 0))],
    [name(text.lookups), right(rate(sum(lookups, Object.keys(lookups))))],
    [name(text.lookupsOther), right(rate(stale), stale > 0)],
  ]
  if (queue) lines.push([name(text.queue), right(text.queueOf(number(queue.length), number(queue.limit)))])
  rows(body('rates'), lines)
}

const memory = ({ used_bytes: used, max_bytes: most }) => {
  if (used == null) return text.unknown
  return most ? `${bytes(used)} (${percent(used / most)})` : bytes(used)
}

export const showRedis = ({ masters }) => {
  rows(
    body('redis'),
    masters.map((m) => [
      name(m.addr || 'Redis'),
      m.error ? right(text.unknown, true) : right(duration(m.latency_ms)),
      right(memory(m)),
      right(m.max_bytes == null ? text.unknown : m.max_bytes ? bytes(m.max_bytes) : text.noLimit),
      m.policy || text.unknown,
    ]),
  )
}

const valueOf = (value) => {
  if (value === true) return { text: text.on, className: 'number good' }
  if (value === false) return { text: text.off, className: 'number soft' }
  return right(typeof value == 'number' ? number(value) : value)
}

export const showSettings = (settings) => rows(body('settings'), settings.map((s) => [name(s.name), valueOf(s.value)]))
