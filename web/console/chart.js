import { put } from './dom.js'
import { compact, dateOf, hourOf, number } from './format.js'
import { text } from './text.js'

const day = 24 * 3600
const hour = 3600
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const dark = matchMedia('(prefers-color-scheme: dark)')

// Chart shows a history in an element, as wide as that is. heading is the element that names it.
export class Chart {
  #element
  #heading
  #plot
  #data = [[], []]
  #shown = ''

  constructor(element, heading) {
    this.#element = element
    this.#heading = heading
    new ResizeObserver(() => this.#resize()).observe(element)
    dark.addEventListener('change', () => this.#draw())
  }

  // show draws counts at times in Unix milliseconds. gap is how far two of them may be
  // apart, in milliseconds, and still be joined by a line.
  show({ at, viewers }, gap) {
    const shown = `${at[0]} ${at.at(-1)} ${at.length}`
    if (shown == this.#shown) return
    this.#shown = shown
    this.#data = withGaps(at, viewers, gap)
    this.#element.role = 'img'
    this.#element.ariaLabel = text.chartName(this.#heading.textContent, number(viewers.at(-1)), number(Math.min(...viewers)), number(Math.max(...viewers)))
    if (!this.#plot) this.#draw()
    else this.#plot.setData(this.#data)
  }

  // say shows a sentence in place of the chart.
  say(sentence) {
    this.#plot?.destroy()
    this.#plot = null
    this.#shown = ''
    this.#element.role = this.#element.ariaLabel = null
    put(this.#element, sentence)
  }

  #draw() {
    if (!this.#shown) return
    this.#plot?.destroy()
    this.#element.textContent = ''
    this.#plot = new uPlot(this.#options(), this.#data, this.#element)
    this.#element.querySelector('.u-legend').ariaHidden = 'true' // it follows the mouse
  }

  #resize() {
    const width = this.#element.clientWidth
    if (this.#plot && width && width != this.#plot.width) this.#plot.setSize({ width, height: this.#plot.height })
  }

  #options() {
    const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line'), width: 1 } }
    return {
      width: this.#element.clientWidth,
      height: 240,
      scales: { x: { range: (_, first, last) => [Math.max(last - day, Math.min(first, last - hour)), last] }, y: { range: (_, __, high) => [0, Math.max(4, high * 1.1)] } },
      series: [
        { label: text.time, value: (_, at) => (at == null ? '–' : dateOf(at * 1000)) },
        {
          label: text.viewersColumn,
          stroke: color('--accent'),
          fill: color('--accent') + '22',
          width: 2,
          value: (_, n) => (n == null ? '–' : number(n)),
        },
      ],
      axes: [
        { ...axis, space: 70, values: (_, times) => times.map((at) => hourOf(at * 1000)) },
        { ...axis, size: 60, incrs: steps, values: (_, counts) => counts.map(compact) },
      ],
      cursor: { drag: { x: false, y: false } },
    }
  }
}

const steps = Array.from({ length: 12 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat()

// withGaps is what uPlot takes: seconds and counts, with none in between where
// two are too far apart.
const withGaps = (at, viewers, gap) => {
  const data = [[], []]
  at.forEach((ms, i) => {
    if (i > 0 && ms - at[i - 1] > gap) {
      data[0].push((at[i - 1] + gap) / 1000)
      data[1].push(null)
    }
    data[0].push(ms / 1000)
    data[1].push(viewers[i])
  })
  return data
}
