import type { Player, VideoOptions } from '../headcount.js'

export interface FrameOptions extends VideoOptions {
  /** Finds in a message what the player does. Default: `data.headcount`, as `tell` sends it. */
  read?: (data: any) => 'play' | 'preview' | 'pause' | 'ended' | undefined
  /** Where the messages must come from. Default: the origin of the frame's `src`. */
  origin?: string
}

/** Counts whoever watches the player in a frame, by the messages that it posts, until the frame is removed. */
export function trackFrame(frame: HTMLIFrameElement, options: FrameOptions): Player

/** For the page in the frame: tells the page around it what a video does. */
export function tell(video: HTMLMediaElement, origin?: string): void
