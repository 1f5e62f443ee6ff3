package browsertest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/programtest"
)

// Players and counts ask for the kind that they are given. The server here has none, so the site answers.
func testKinds(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	s.block(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/lives/"):
			_, _ = fmt.Fprint(w, `{"recorded_at":1700000000,"beat_after":150}`)
		case r.URL.Query().Get("kind") == "live":
			_, _ = fmt.Fprint(w, `{"counts":[{"video_id":"","viewers":7}],"as_of":"2026-11-30T14:00:00Z"}`)
		default:
			return false
		}
		return true
	})
	v.open(t, s.page("/", s.script()+playing(video, `data-headcount-kind="live"`)+
		fmt.Sprintf(`<viewer-count id="live" kind="live" video-id="%s"></viewer-count> <viewer-count id="first" video-id="%s"></viewer-count>`, video, video)))
	v.until(t, "live.viewers == 7 && first.viewers === 0")
	programtest.Eventually(t, "a play of a live stream", func() bool {
		return slices.ContainsFunc(s.all(), func(r request) bool { return r.Path == "/v1/lives/"+video+"/play" })
	})
	if sent := s.sent(video, "play"); len(sent) != 0 {
		t.Errorf("sent %v too, want nothing for a video of that id", sent)
	}
	queries := []string{s.lookups()[0].Query, s.lookups()[1].Query}
	slices.Sort(queries)
	if diff := cmp.Diff([]string{"kind=live&video_id=" + video, "video_id=" + video}, queries); diff != "" {
		t.Errorf("lookups (-want +got):\n%s", diff)
	}
	v.wantQuiet(t)
}
