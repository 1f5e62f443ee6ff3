// previewOf returns what tells whether a video is but a preview: it is muted and started by itself, as far as one can
// tell. It is asked at each event of the video, and what has been heard once is a preview no more. One with autoplay that
// has played is played on by whoever has just pressed something.
export const previewOf = () => {
  let heard = false
  let alone
  return ({ paused, muted, autoplay, played }, event) => {
    heard ||= !(muted || paused)
    if (alone == null || event?.type == 'play') {
      const { hasBeenActive, isActive } = navigator.userActivation ?? {}
      alone = autoplay ? !(event && isActive && played.length) : hasBeenActive === false
    }
    return alone && !heard
  }
}
