/** What a viewer is counted by. */
export interface PlayerOptions {
  /** The video: 1 to 256 bytes of UTF-8 without control characters, not beginning with `count:`. */
  videoId: string | number
  /** The kind of the video, such as `live`, where the server lists several. Left out: `video`. */
  kind?: string
  /** Who watches. Left out or empty: a random id that stays in this browser, or with a token, the token's subject. */
  viewerId?: string | number
  /** The server, such as `https://count.example.org`. Left out: `Headcount.endpoint`. */
  endpoint?: string
  /** A token, for servers that want one; a function is asked before each beat, so that it can be renewed, and again after a 401. */
  token?: string | (() => string | Promise<string>)
}

export interface VideoOptions extends PlayerOptions {
  /** Count a muted video that started by itself, too. Default: false, as that is a preview. */
  muted?: boolean
}

/** A player of any kind. Saying the same thing twice does no harm. */
export interface Player {
  /** It plays: the viewer is counted at once, and again every `beat_after` seconds of the server. */
  play(): void
  /** It does not play at present: no more beats. The viewer is counted until the server's window has passed. */
  pause(): void
  /** It ended, or was removed: the viewer is not counted any more. */
  leave(): void
}

/** What watches a video. */
export interface Tracker {
  /** Stops watching, and leaves. */
  stop(): void
}

/**
 * Counts whoever watches a `<video>` or `<audio>`. Elements with `data-headcount` are found without it. An element that is
 * tracked already is tracked anew. It never throws for what a server, a network or a browser does.
 */
export function trackVideo(video: HTMLMediaElement, options: VideoOptions): Tracker

/** Counts whoever watches a player that is no media element: say when it plays, pauses and ends. */
export function trackPlayer(options: PlayerOptions): Player

/** `<viewer-count video-id="10001">` */
export interface ViewerCountElement extends HTMLElement {
  /** The number shown; null while it is not known. A `change` event tells of a new one, or of a new `state`. */
  readonly viewers: number | null
}

export interface HeadcountGlobal {
  /** The server that counts. Default: where the script came from, or its tag's `data-endpoint`. */
  endpoint: string | undefined
  trackVideo: typeof trackVideo
  trackPlayer: typeof trackPlayer
}

declare const Headcount: HeadcountGlobal
export default Headcount

declare global {
  var Headcount: HeadcountGlobal
  interface HTMLElementTagNameMap {
    'viewer-count': ViewerCountElement
  }
}
