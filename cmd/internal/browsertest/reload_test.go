package browsertest

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"

	"headcount/internal/programtest"
)

// wantPlays checks how often a video was started.
func (l *lab) wantPlays(t *testing.T, videoID string, want int) {
	t.Helper()
	var got struct{ Total int }
	body := programtest.Get(t, l.backend+"/v1/videos/"+videoID+"/plays").OK(t)
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Total != want {
		t.Errorf("video %s was started %d times, want %d", videoID, got.Total, want)
	}
}

// settle pauses a video, and waits until its page has no request under way: a
// viewer whose first play is not answered is not known to have been counted.
func (v *tab) settle(t *testing.T, videoID string) {
	t.Helper()
	v.run(t, "v"+videoID+".pause()")
	v.until(t, "v"+videoID+".paused")
	v.quiet(t)
}

// Who reloads the page does not start the video anew, but who comes back does.
func testReload(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	url, elsewhere := s.page("/", s.script()+playing(video, "")), s.page("/elsewhere", s.script())
	v.watchRequests(t)
	v.open(t, url)
	s.wait(t, video, "play", 1)
	for n := range 3 {
		v.settle(t, video)
		plays := len(s.sent(video, "play"))
		v.do(t, chromedp.Reload())
		if first := s.wait(t, video, "play", plays+1); !first.message(t).Resumed {
			t.Errorf("the first play after a reload is %s, want it resumed", first.Body)
		}
		if next := s.wait(t, video, "play", plays+2); next.message(t).Resumed {
			t.Errorf("the second play after a reload is %s, which need not be resumed", next.Body)
		}
		s.wait(t, video, "leave", n+1)
	}
	v.settle(t, video)
	l.wantViewers(t, video, 1)
	l.wantPlays(t, video, 1)

	v.open(t, elsewhere)
	l.wantViewers(t, video, 0)
	v.open(t, url)
	l.wantViewers(t, video, 1)
	v.settle(t, video)
	l.wantPlays(t, video, 2)
	v.wantQuiet(t)
}
