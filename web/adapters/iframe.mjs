import { trackPlayer } from '../headcount.mjs'

// trackFrame counts whoever watches the player in a frame, which says what it does by postMessage. read finds that in a
// message: 'play', 'pause' or 'ended', or nothing. Only messages of the frame itself, from where its src is, are heard.
export const trackFrame = (frame, { read = (data) => data?.headcount, origin = new URL(frame.src, location).origin, ...options }) => {
  const player = trackPlayer(options)
  const does = new Map([['play', player.play], ['pause', player.pause], ['ended', player.leave]])
  addEventListener('message', (message) => {
    if (message.source === frame.contentWindow && message.origin === origin) does.get(read(message.data))?.()
  })
  new MutationObserver(() => frame.isConnected || player.leave()).observe(document, { subtree: true, childList: true })
  return player
}

// tell is for the page in the frame, where that is yours: it tells the page around it what a video does.
export const tell = (video, origin = '*') => {
  const say = (headcount) => parent.postMessage({ headcount }, origin)
  for (const type of ['playing', 'timeupdate']) video.addEventListener(type, () => video.paused || say('play'))
  for (const type of ['pause', 'waiting', 'emptied']) video.addEventListener(type, () => say('pause'))
  video.addEventListener('ended', () => say('ended'))
}
