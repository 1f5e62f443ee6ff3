// Simulated viewers: players like any other, all they know is the public API.
const most = 100 // of one video
const crowds = []
let beatAfter = 1 // seconds; the server says

const random = () => 'demo-' + Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join('')

const post = async (path, body) => {
  const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
  return answer
}

// play records a play of each of the viewers, and when that was.
const play = async (viewers) => {
  if (!viewers.length) return
  const plays = viewers.map(({ videoId, viewerId }) => ({ video_id: videoId, viewer_id: viewerId }))
  const answer = await (await post('/v1/plays', { plays })).json()
  if (answer.errors.length) throw new Error(answer.errors[0].detail)
  for (const viewer of viewers) viewer.recordedAt = answer.recorded_at
  beatAfter = answer.beat_after
}

const leaveOf = ({ videoId, viewerId, recordedAt }) => [
  `/v1/videos/${encodeURIComponent(videoId)}/leave`,
  { viewer_id: viewerId, recorded_at: recordedAt },
]

// Crowd is the simulated viewers of one video.
export class Crowd {
  #viewers = []
  #videoId
  #last = Promise.resolve() // the last change, for which the next one waits

  constructor(videoId) {
    this.#videoId = videoId
    crowds.push(this)
  }

  get viewers() {
    return this.#viewers
  }

  // change adds viewers, or removes some, and resolves to how many.
  change(n) {
    const change = () => (n > 0 ? this.#add(Math.min(n, most - this.#viewers.length)) : this.#remove(-n))
    this.#last = this.#last.then(change, change)
    return this.#last
  }

  async #add(n) {
    const viewers = Array.from({ length: n }, () => ({ videoId: this.#videoId, viewerId: random() }))
    await play(viewers)
    this.#viewers.push(...viewers)
    return n
  }

  async #remove(n) {
    const leaving = this.#viewers.splice(-n)
    await Promise.all(leaving.map((viewer) => post(...leaveOf(viewer))))
    return leaving.length
  }
}

const all = () => crowds.flatMap((crowd) => crowd.viewers)

// keepBeating lets the viewers beat as the server says, and leave with the page.
export const keepBeating = () => {
  let last = Date.now()
  setInterval(() => {
    if (Date.now() - last < beatAfter * 1000) return
    last = Date.now()
    play(all()).catch(() => {}) // the next one tries again
  }, 1000)
  addEventListener('pagehide', () => {
    for (const viewer of all()) {
      const [path, body] = leaveOf(viewer)
      navigator.sendBeacon(path, JSON.stringify(body))
    }
  })
}
