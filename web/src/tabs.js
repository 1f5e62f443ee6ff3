import { forget, notes, random, save } from './store.js'

const begin = 'headcount '
const day = 86_400_000 // ms

// tabsOf coordinates the tabs in which one viewer plays one video, so that closing one does not remove who still
// watches in another. Each keeps a note of its own, so none overwrites another's: until when it is surely there, and its
// last play by the server's clock.
export const tabsOf = (url, viewer) => {
  const group = begin + url + ' ' + viewer + ' '
  const own = group + random()
  return {
    // stay says that this tab will be there for ms, and may be asked for again until then.
    stay: (ms, seen) => save(own, Date.now() + ms + ' ' + seen),

    // others tells whether other tabs stay, and the last play of all.
    others(seen) {
      let stay = false
      for (const [name, note] of notes()) {
        const [until, at] = note.split(' ')
        if (name == own || !name.startsWith(begin)) continue
        if (name.startsWith(group)) {
          stay ||= until > Date.now()
          seen = Math.max(seen, at || 0)
        } else if (+until + day < Date.now()) forget(name) // of a tab that died
      }
      return { stay, seen }
    },

    // end removes all notes: the last tab has gone.
    end: () => notes().forEach(([name]) => name.startsWith(group) && forget(name)),
  }
}
