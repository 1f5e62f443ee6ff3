import { trackPlayer } from '../headcount.mjs'
import { previewOf } from './preview.mjs'

// trackVideojs counts whoever watches a video.js player, whatever it plays with. It leaves when the player is disposed.
export const trackVideojs = (videojs, options) => {
  const player = trackPlayer(options)
  const preview = previewOf()
  const look = (event) => {
    const [paused, muted, autoplay, played] = ['paused', 'muted', 'autoplay', 'played'].map((name) => videojs[name]())
    const unwatched = preview({ paused, muted, autoplay, played }, event) && !options?.muted
    if (!paused && !videojs.ended() && event?.type != 'play') unwatched ? player.pause() : player.play()
  }
  videojs.on(['play', 'playing', 'timeupdate', 'volumechange'], look)
  videojs.on(['pause', 'waiting', 'emptied'], () => player.pause())
  videojs.on(['ended', 'dispose'], () => player.leave())
  return player
}
