// How numbers and times are written, in the browser's language and zone.
import { language, text } from './text.js'

const whole = new Intl.NumberFormat(language)
const short = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 })
const tenths = new Intl.NumberFormat(language, { maximumFractionDigits: 1 })
const hundredths = new Intl.NumberFormat(language, { maximumFractionDigits: 2 })
const part = new Intl.NumberFormat(language, { style: 'percent' })
const clock = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
const hour = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const date = new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

const unit = (name) => new Intl.NumberFormat(language, { style: 'unit', unit: name, unitDisplay: 'long', maximumFractionDigits: 1 })

// span writes milliseconds as a time over which something goes, "24 hours".
export const span = (ms) => (ms < 3600000 ? unit('minute').format(ms / 60000) : unit('hour').format(ms / 3600000))

export const number = (n) => whole.format(n)
export const compact = (n) => short.format(n)
export const rate = (n) => tenths.format(n)
export const percent = (n) => part.format(n)
export const timeOf = (ms) => clock.format(ms)
export const hourOf = (ms) => hour.format(ms)
export const dateOf = (ms) => date.format(ms)

// here reports whether it is the same time in a zone as in the browser's.
export const here = (zone) => {
  const timeIn = (timeZone) => new Date().toLocaleString('en', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  try {
    return timeIn(zone) == timeIn()
  } catch {
    return false // it knows no such zone
  }
}

// ago writes milliseconds as an age.
export const ago = (ms) => {
  const s = Math.max(0, Math.round(ms / 1000))
  if (s < 100) return text.seconds(s)
  if (s < 6000) return text.minutes(Math.round(s / 60))
  if (s < 172800) return text.hours(Math.round(s / 3600))
  return text.days(Math.round(s / 86400))
}

export const duration = (ms) => (ms < 1000 ? `${hundredths.format(ms)} ms` : text.seconds(tenths.format(ms / 1000)))

export const bytes = (n) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const i = Math.min(units.length - 1, n > 0 ? Math.floor(Math.log2(n) / 10) : 0)
  return `${tenths.format(n / 1024 ** i)} ${units[i]}`
}
