// Counts who watches a video, and shows how many do. What may be called, and
// how, is in ../headcount.d.ts. ../headcount.js and ../headcount.mjs are made
// of this file by `go generate ./web`.
import { start as startCounts } from './count.js'
import { page } from './page.js'
import { start as startPlayers, trackPlayer } from './player.js'
import { start as startVideos, trackVideo } from './video.js'

const start = () => {
  const script = globalThis.document?.currentScript
  const source = script?.src || import.meta.url // a classic script, or a module
  page.endpoint = script?.dataset.endpoint || /^https?:..[^/]+/.exec(source)?.[0]
  if (globalThis.document) {
    startPlayers()
    startVideos()
    startCounts()
  } // and otherwise it is only imported, to render pages on a server
  return Object.assign(page, { trackPlayer, trackVideo })
}

// However often, and in whichever form, a page loads this: there is one of it.
// An element with that id is none.
const there = globalThis.Headcount
const Headcount = there?.trackVideo?.call ? there : (globalThis.Headcount = start())

export default Headcount
const { trackPlayer: player, trackVideo: video } = Headcount
export { player as trackPlayer, video as trackVideo }
