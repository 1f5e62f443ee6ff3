import { trackPlayer } from '../headcount.mjs'

// trackVideojs counts whoever watches a video.js player, whatever it plays with. It leaves when the player is disposed.
export const trackVideojs = (videojs, options) => {
  const player = trackPlayer(options)
  videojs.on(['playing', 'timeupdate'], () => !videojs.paused() && !videojs.ended() && player.play())
  videojs.on(['pause', 'waiting', 'emptied'], () => player.pause())
  videojs.on(['ended', 'dispose'], () => player.leave())
  return player
}
