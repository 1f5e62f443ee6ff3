// The little of Markdown that the runbook uses, as elements.

// code is `…`; a link is only followed within the runbook, the others are text.
const inline = /`([^`]+)`|\[([^\]]+)\]\(([^)]+)\)|\*\*([^*]+)\*\*/g

const element = (tag, ...content) => {
  const made = document.createElement(tag)
  made.append(...content)
  return made
}

const linkTo = (said, target) => {
  if (!target.startsWith('#')) return said.replaceAll('`', '')
  const link = element('a', said)
  link.href = `#runbook=${target.slice(1)}`
  return link
}

const phrases = (text) => {
  const made = []
  let end = 0
  for (const found of text.matchAll(inline)) {
    const [all, code, said, target, strong] = found
    made.push(text.slice(end, found.index))
    made.push(code ? element('code', code) : said ? linkTo(said, target) : element('strong', strong))
    end = found.index + all.length
  }
  return [...made, text.slice(end)]
}

const block = (text) => {
  const heading = text.match(/^#+ (.*)$/)
  if (heading) return element('h3', ...phrases(heading[1]))
  const lines = text.replaceAll(/\n(?!- )\s*/g, ' ').split('\n')
  if (text.startsWith('- ')) return element('ul', ...lines.map((line) => element('li', ...phrases(line.slice(2)))))
  return element('p', ...phrases(lines.join(' ')))
}

export const elementsOf = (markdown) => markdown.split(/\n\s*\n/).map((text) => block(text.trim()))
