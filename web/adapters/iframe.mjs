import { trackPlayer } from '../headcount.mjs'
import { previewOf } from './preview.mjs'

// trackFrame counts whoever watches the player in a frame, which says what it does by postMessage. read finds that in a
// message: 'play', 'preview', 'pause' or 'ended', or nothing. Only messages of the frame itself, from where its src is, are
// heard, until it is removed.
export const trackFrame = (frame, { read = (data) => data?.headcount, origin = new URL(frame.src, location).origin, ...options }) => {
  const player = trackPlayer(options)
  const does = new Map([
    ['play', player.play],
    ['preview', options.muted ? player.play : player.pause],
    ['pause', player.pause],
    ['ended', player.leave],
  ])
  const hear = (message) => {
    if (message.source === frame.contentWindow && message.origin === origin) does.get(read(message.data))?.()
  }
  let attached = false // to the document, at some time
  const look = () => {
    attached ||= frame.isConnected
    if (!attached || frame.isConnected) return
    removal.disconnect()
    removeEventListener('message', hear)
    frame.removeEventListener('load', player.pause)
    player.leave()
  }
  const removal = new MutationObserver(look)
  removal.observe(document, { subtree: true, childList: true })
  addEventListener('message', hear)
  frame.addEventListener('load', player.pause) // another page, which has not played yet
  look()
  return player
}

const events = ['play', 'playing', 'timeupdate', 'volumechange', 'pause', 'waiting', 'emptied', 'ended']

// tell is for the page in the frame, where that is yours: it tells the page around it what a video does.
export const tell = (video, origin = '*') => {
  const say = (headcount) => parent.postMessage({ headcount }, origin)
  const preview = previewOf()
  const look = (event) => {
    const play = preview(video, event) ? 'preview' : 'play'
    if (video.ended) say('ended')
    else say(video.paused || video.readyState < 3 ? 'pause' : play)
  }
  for (const type of events) video.addEventListener(type, look)
  addEventListener('pagehide', () => say('pause'))
  look()
}
