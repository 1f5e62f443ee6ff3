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
			v.run(t, test.video+".play()")
			s.wait(t, video, "play", 2)
			v.until(t, "document.querySelector('viewer-count').viewers > 0")
			v.run(t, "window.VIDEO = "+test.video+"; VIDEO.pause()")
			v.until(t, "VIDEO.paused")
			s.wantSent(t, video, "leave", 0)
			v.run(t, test.remove)
			s.wait(t, video, "leave", 1)
			v.wantQuiet(t)
		})
	}
}
