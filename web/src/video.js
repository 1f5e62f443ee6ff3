import { previewOf } from '../adapters/preview.mjs'
import { warn } from './page.js'
import { trackPlayer } from './player.js'

const tracked = new Map() // element → its tracker

const events = 'play playing pause waiting ended emptied seeked ratechange volumechange timeupdate'.split(' ')

// trackVideo tracks a <video> or <audio>. Events only say when to look: whether it plays, the element knows. So seeks
// and loops make no difference, and timeupdate keeps the beat where timers are throttled.
export const trackVideo = (video, options) => {
  if (!video?.addEventListener) {
    warn('no video to track')
    return { stop() {} }
  }
  const player = trackPlayer(options)
  let attached = false // to the document, at some time
  const preview = previewOf()

  const look = (event) => {
    attached ||= video.isConnected
    const unwatched = preview(video, event) && !options?.muted
    if (video.ended || (attached && !video.isConnected)) player.leave()
    else if (video.paused || video.readyState < 3 || !video.playbackRate || unwatched) player.pause()
    else player.play()
  }
  player.resume = () => look({})

  const tracker = {
    look,
    stop() {
      events.forEach((type) => video.removeEventListener(type, look))
      if (tracked.get(video) == tracker) tracked.delete(video)
      player.leave()
    },
  }
  tracked.get(video)?.stop() // or it would be counted for two videos
  tracked.set(video, tracker)
  events.forEach((type) => video.addEventListener(type, look))
  look()
  return tracker
}

const attributes = ['', '-kind', '-viewer', '-endpoint', '-muted'].map((end) => 'data-headcount' + end)

// wish is what an element asks for, in a form that can be compared.
const wish = (video) =>
  video.isConnected &&
  video.dataset.headcount &&
  [...attributes.map((name) => video.getAttribute(name)), !!video.dataset.headcountToken].join('\n')

// scan finds the elements with data-headcount that have come, gone or changed.
const scan = () => {
  for (const [video, tracker] of tracked) {
    if (tracker.wish && tracker.wish != wish(video)) tracker.stop()
    else if (!video.isConnected) tracker.look({})
  }
  for (const video of document.querySelectorAll('video[data-headcount],audio[data-headcount]')) {
    if (!wish(video) || tracked.has(video)) continue
    const data = video.dataset
    const tracker = trackVideo(video, {
      videoId: data.headcount,
      kind: data.headcountKind,
      viewerId: data.headcountViewer,
      endpoint: data.headcountEndpoint,
      muted: 'headcountMuted' in data,
      token: data.headcountToken && (() => data.headcountToken), // the page may renew it
    })
    tracker.wish = wish(video)
  }
}

export const start = () => {
  new MutationObserver(scan).observe(document, { subtree: true, childList: true, attributeFilter: [...attributes, 'data-headcount-token'] })
  Promise.resolve().then(scan) // so that whoever imports this may set the endpoint first
}
