package browsertest

import (
	"io"
	"net/http"
	"testing"
)

// standIn is for video.js: what the adapter uses of it, around a video.
const standIn = `
window.videojs = (id) => {
	const video = document.createElement('video')
	document.getElementById(id).append(video)
	return {
		on: (types, listener) => types.forEach((type) => video.addEventListener(type, listener)),
		paused: () => video.paused,
		ended: () => video.ended,
		muted: () => video.muted,
		autoplay: () => video.autoplay,
		played: () => video.played,
		src: ({ src }) => { video.src = src },
		dispose: () => { video.remove(); video.dispatchEvent(new Event('dispose')) },
	}
}`

// serveExamples serves the examples beside their own scripts, and silence for
// their video.
func (s *site) serveExamples() {
	files := http.StripPrefix("/examples/", http.FileServer(http.Dir("../../../web/examples")))
	s.handle("/examples/", files.ServeHTTP)
	s.handle("/examples/lesson.mp4", serveSound)
	s.handle("/examples/node_modules/video.js/dist/video.min.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, standIn)
	})
}

// testExamples lets the video of each example page play, pause and go.
func testExamples(t *testing.T, l *lab) {
	const video = "10001" // of all examples
	for _, test := range []struct{ page, video, remove string }{
		{"video.html", "document.querySelector('video')", "VIDEO.remove()"},
		{"videojs.html", "document.querySelector('video')", "VIDEO.dispatchEvent(new Event('dispose'))"},
		{"iframe.html", "document.querySelector('iframe').contentDocument.querySelector('video')", "document.querySelector('iframe').remove()"},
	} {
		t.Run(test.page, func(t *testing.T) {
			t.Parallel()
			s, v := l.site(t), l.browser.visitor(t)
			s.serveExamples()
			v.open(t, s.URL+"/examples/"+test.page)
			v.until(t, test.video+" && document.querySelector('viewer-count').viewers !== null")
			s.wantSent(t, video, "play", 0)
			v.run(t, "window.VIDEO = "+test.video+"; VIDEO.muted = true; VIDEO.play()")
			v.until(t, "VIDEO.currentTime > 1")
			s.wantSent(t, video, "play", 0) // it is a preview
			v.run(t, "VIDEO.muted = false")
			s.wait(t, video, "play", 2)
			v.until(t, "document.querySelector('viewer-count').viewers > 0")
			v.run(t, "VIDEO.pause()")
			v.until(t, "VIDEO.paused")
			s.wantSent(t, video, "leave", 0)
			v.run(t, test.remove)
			s.wait(t, video, "leave", 1)
			v.wantQuiet(t)
		})
	}
}

// A frame that goes to another page has stopped playing.
func testFrame(t *testing.T, l *lab) {
	const video = "10001"
	s, v, other := l.site(t), l.browser.visitor(t), l.video()
	s.serveExamples()
	v.open(t, s.URL+"/examples/iframe.html")
	v.until(t, "window.Headcount && lesson.contentDocument.readyState == 'complete' && lesson.contentDocument.querySelector('video')")
	v.run(t, `Headcount.trackPlayer({ videoId: `+other+` }).play()
		addEventListener('message', (e) => { window.said = e.data.headcount })
		lesson.contentDocument.querySelector('video').play()`)
	s.wait(t, video, "play", 1)
	v.run(t, "lesson.addEventListener('load', () => { window.loaded = true }); lesson.src = 'about:blank'")
	v.until(t, "window.loaded")
	if got := eval[string](t, v, "said"); got != "pause" {
		t.Errorf("the last word of the page in the frame is %q, want pause", got)
	}
	s.more(t, other, 1) // whatever was under way has arrived
	before := len(s.sent(video, "play"))
	s.more(t, other, 3)
	s.wantSent(t, video, "play", before)
}
