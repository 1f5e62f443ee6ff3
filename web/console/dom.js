export const $ = (id) => document.getElementById(id)

// put sets an element's text, without touching it when that is what it says.
export const put = (element, said) => {
  if (element.textContent != said) element.textContent = said
}

// rows fills a table's body. A cell is its text, or {text, className, header}.
export const rows = (body, lines) => {
  const said = JSON.stringify(lines)
  if (body.said == said) return
  body.said = said
  body.replaceChildren(...lines.map(row))
}

const row = (cells) => {
  const line = document.createElement('tr')
  line.append(...cells.map(cell))
  return line
}

const cell = (given) => {
  const { text, className = '', header = false } = typeof given == 'object' ? given : { text: given }
  const element = document.createElement(header ? 'th' : 'td')
  if (header) element.scope = 'row'
  element.className = className
  element.textContent = text
  return element
}
