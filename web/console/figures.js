import { $, put } from './dom.js'
import { ago, dateOf, here, number, span } from './format.js'
import { text } from './text.js'

// show puts a figure, {value}, {off} or {failed}, into an element, as write writes it.
export const show = (id, figure, write = number) => {
  const known = figure?.value != null
  put($(id), known ? write(figure.value) : figure?.off ? text.off : text.unknown)
  $(id).classList.toggle('unknown', !known)
}

const note = (id, said) => put($(id), said || '')

export const showViewers = (id, { now, as_of: asOf }, clock) => {
  show(id, { value: now })
  note(`${id}-note`, asOf != null ? text.asOf(ago(clock - asOf)) : clock != null && text.asOfUnknown)
}

export const showPeaks = (id, figure) => {
  show(id, figure, ({ today }) => number(today))
  const { today_at: at, ever, time_zone: zone } = figure.value ?? {}
  const said = ever && (at ? text.peakNote(dateOf(at), number(ever)) : text.everNote(number(ever)))
  note(`${id}-note`, said && said + (here(zone) ? '' : text.zoneNote(zone)))
}

export const showPlays = (id, figure) => {
  show(id, figure, ({ day }) => number(day))
  note(`${id}-note`, figure.value && text.playsNote(number(figure.value.total)))
}

// nameCharts says over which time they are, in milliseconds; 0 is a history that is off.
export const nameCharts = (ms) => {
  for (const id of ['chart-name', 'video-chart-name']) put($(id), ms ? text.chartOver(span(ms)) : text.chartNameOff)
}

// gapOf is how far two points may be apart for a line between them, in milliseconds: a few
// intervals, or those of another time.
export const gapOf = (interval) => Math.max(4 * interval, 600000)

// showHistory draws a history, or says why there is none.
export const showHistory = (chart, figure, interval, empty) => {
  if (figure.off) chart.say(text.chartOff)
  else if (figure.failed) chart.say(text.chartUnknown)
  else if (!figure.value.at.length) chart.say(empty)
  else chart.show(figure.value, gapOf(interval))
}
