import type { Player, VideoOptions } from '../headcount.js'

/** The part of a video.js player that is needed. */
interface Videojs {
  on(events: string[], listener: (event?: { type: string }) => void): void
  paused(): boolean
  ended(): boolean
  muted(): boolean
  autoplay(): boolean | string
  played(): { length: number }
}

/** Counts whoever watches a video.js player. */
export function trackVideojs(videojs: Videojs, options: VideoOptions): Player
