package recorder_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/keys"
	"headcount/internal/redistest"
	"headcount/recorder"
)

func TestIDsRoundTrip(t *testing.T) {
	t.Parallel()
	ids := []string{
		"a[b]*", "a?", `\`, "a b", "日本語", "🎬", strings.Repeat("x", keys.MaxIDBytes), "a*", "abc", "a", "*", "{a}b", "%d",
		"block-v1:edX+DemoX+type@video+block@0b9e", "count", "https://example.com/v?id=1", "1",
	}
	f := newFixture(t)
	for _, id := range ids {
		f.mustPlay(t, id, id)
	}
	for i, id := range ids {
		var got []string
		for viewer := range f.viewers(t, id) {
			got = append(got, viewer)
		}
		if diff := cmp.Diff([]string{id}, got); diff != "" {
			t.Errorf("viewers of %q (-want +got):\n%s", id, diff)
		}
		f.wantCount(t, id, "1")

		f.mustLeave(t, id, id, 0)
		for _, other := range ids[i+1:] {
			if got := f.viewers(t, other); len(got) != 1 {
				t.Errorf("viewers of %q after a leave of %q = %v, want 1", other, id, got)
			}
		}
	}
}

func TestBadIDsAreRejected(t *testing.T) {
	t.Parallel()
	bad := map[string]string{
		"empty":             "",
		"257 bytes":         strings.Repeat("x", keys.MaxIDBytes+1),
		"control character": "a\nb",
		"NUL":               "a\x00b",
		"C1 control":        "a\u0085b",
		"invalid UTF-8":     "a\xffb",
	}
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	f.mustPlay(t, "10001", "u1")
	size := f.size(t)

	for name, id := range bad {
		f.wantRejected(t, name, "video_id", id, "u1")
		f.wantRejected(t, name, "viewer_id", "10001", id)
	}
	f.wantRejected(t, "reserved prefix", "video_id", "count:zz", "u1")
	f.wantRejected(t, "reserved prefix alone", "video_id", "count:", "u1")
	if got := f.size(t); got != size {
		t.Errorf("DBSIZE = %d, want %d as before", got, size)
	}
	if got := f.viewers(t, "10001"); len(got) != 1 {
		t.Errorf("hash = %v, want u1 as before", got)
	}
	f.mustPlay(t, "10001", "count:zz") // the prefix is reserved for videos only
}

func (f *fixture) size(t *testing.T) int64 {
	t.Helper()
	size, err := f.db.DBSize(t.Context()).Result()
	if err != nil {
		t.Fatalf("DBSIZE: %v", err)
	}
	return size
}

func (f *fixture) wantRejected(t *testing.T, name, field, videoID, viewerID string) {
	t.Helper()
	_, play := f.Play(t.Context(), videoID, viewerID)
	leave := f.Leave(t.Context(), videoID, viewerID, 0)
	for _, err := range []error{play, leave} {
		var bad *keys.IDError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s as %s: error %v, want a *keys.IDError of that field", name, field, err)
		}
	}
}
