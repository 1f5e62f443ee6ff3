import type { Player, PlayerOptions } from '../headcount.js'

/** The part of a video.js player that is needed. */
interface Videojs {
  on(events: string[], listener: () => void): void
  paused(): boolean
  ended(): boolean
}

/** Counts whoever watches a video.js player. */
export function trackVideojs(videojs: Videojs, options: PlayerOptions): Player
