import { $ } from './dom.js'
import { dateOf, duration, number, percent } from './format.js'
import { text } from './text.js'

// How the values of warnings are written.
const writers = {
  master: (addr) => addr && ` ${addr}`,
  fill: percent,
  share: percent,
  since: (at) => at && dateOf(at),
  took_ms: duration,
  interval_ms: duration,
}

const words = ({ kind, values = {} }) => {
  const written = {}
  for (const [key, value] of Object.entries(values)) {
    const write = writers[key] ?? (typeof value == 'number' ? number : String)
    written[key.replace('_ms', '')] = write(value)
  }
  return text.warningOf[kind](written)
}

const item = ({ said, runbook }) => {
  const line = document.createElement('li')
  const link = document.createElement('a')
  link.href = `#runbook=${runbook}`
  link.textContent = text.whatToDo
  link.ariaLabel = text.aboutWarning(said)
  line.append(said, ' ', link)
  return line
}

let last

// showWarnings changes the list only when something else is wrong, so that a
// screen reader is not told again and again, and a link keeps its focus.
export const showWarnings = (warnings) => {
  const all = warnings.map((w) => ({ said: words(w), runbook: w.runbook }))
  if (JSON.stringify(all) == last) return
  last = JSON.stringify(all)
  const focused = document.activeElement?.getAttribute('href')
  $('warning-list').replaceChildren(...all.map(item))
  $('warning-list').querySelector(`[href="${CSS.escape(focused ?? '')}"]`)?.focus()
  $('warnings').hidden = !all.length
  $('well').hidden = all.length > 0
}
