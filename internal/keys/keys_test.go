package keys

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestKeysAreTheDocumentedNames(t *testing.T) {
	t.Parallel()
	k := New("video")
	for _, tc := range []struct{ name, got, want string }{
		{"online", k.Online("10001"), "video:online:10001"},
		{"count", k.Count("10001"), "video:online:count:10001"},
		{"lease", k.Lease(), "video:worker:lease"},
		{"last pass", k.LastPass(), "video:worker:last_pass"},
		{"online users", k.OnlineUsers(), "video:stats:online"},
		{"uniques", k.Uniques("10001", "2026113014"), "video:stats:uniques:{10001}:2026113014"},
		{"uniques of the site", k.Uniques("", "2026113014"), "video:stats:site_uniques:{site}:2026113014"},
		{"uniques of a brace", k.Uniques("}x", "2026113014"), "video:stats:uniques:{\x1f}x}:2026113014"},
		{"plays", k.Plays("10001"), "video:stats:plays:10001"},
		{"plays of the site", k.Plays(""), "video:stats:plays:"},
		{"pattern of plays", k.PlaysPattern(), "video:stats:plays:*"},
		{"top", k.Top(), "video:stats:top"},
		{"peak", k.Peak("10001"), "video:stats:peak:10001"},
		{"history", k.History("10001"), "video:stats:history:10001"},
		{"pattern", k.OnlinePattern(), "video:online:*"},
		{"pattern with glob characters", New(`a*[b]?\`).OnlinePattern(), `a\*\[b\]\?\\:online:*`},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	k := New("video")
	for _, tc := range []struct {
		key, id   string
		count, ok bool
	}{
		{"video:online:10001", "10001", false, true},
		{"video:online:count:10001", "10001", true, true},
		{"video:online:a:b count:", "a:b count:", false, true},
		{"video:online:count:count:x", "count:x", true, true},
		{"video:onlin", "", false, false},
		{"other:online:1", "", false, false},
	} {
		id, count, ok := k.Parse(tc.key)
		if ok != tc.ok || count != tc.count || (ok && id != tc.id) {
			t.Errorf("Parse(%q) = %q, %v, %v; want %q, %v, %v", tc.key, id, count, ok, tc.id, tc.count, tc.ok)
		}
	}
}

func TestCheckID(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, id, videoErr, viewerErr string }{
		{"plain", "10001", "", ""},
		{"course block", "block-v1:edX+DemoX+type@video+block@0b9e", "", ""},
		{"glob characters", `a[b]*?\`, "", ""},
		{"space", "a b", "", ""},
		{"japanese", "日本語", "", ""},
		{"emoji", "🎬", "", ""},
		{"256 bytes", strings.Repeat("x", 256), "", ""},
		{"257 bytes", strings.Repeat("x", 257), "video_id: has 257 bytes; it takes 1 to 256", "viewer_id: has 257 bytes; it takes 1 to 256"},
		{"empty", "", "video_id: is missing; it takes 1 to 256 bytes", "viewer_id: is missing; it takes 1 to 256 bytes"},
		{"not UTF-8", "a\xff", "video_id: is not valid UTF-8", "viewer_id: is not valid UTF-8"},
		{"newline", "a\nb", "video_id: has a control character", "viewer_id: has a control character"},
		{"C1 control", "a\u0085b", "video_id: has a control character", "viewer_id: has a control character"},
		{"reserved", "count:zz", `video_id: must not begin with "count:", which is reserved for count keys`, ""},
		{"reserved inside", "a:count:zz", "", ""},
	} {
		if got := text(CheckVideoID(tc.id)); got != tc.videoErr {
			t.Errorf("%s: CheckVideoID: got %q, want %q", tc.name, got, tc.videoErr)
		}
		if got := text(CheckViewerID(tc.id)); got != tc.viewerErr {
			t.Errorf("%s: CheckViewerID: got %q, want %q", tc.name, got, tc.viewerErr)
		}
	}
}

func TestAtIndex(t *testing.T) {
	t.Parallel()
	other := errors.New("connection refused")
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"video id", CheckVideoID(""), "video_id[3]: is missing; it takes 1 to 256 bytes"},
		{"viewer id", CheckViewerID("a\nb"), "viewer_id[3]: has a control character"},
		{"wrapped", fmt.Errorf("lookup: %w", CheckVideoID("a\xff")), "video_id[3]: is not valid UTF-8"},
		{"no error", nil, ""},
	} {
		if got := text(AtIndex(tc.err, 3)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := AtIndex(other, 3); !errors.Is(got, other) {
		t.Errorf("another error: got %v, want %v", got, other)
	}
	bad := CheckVideoID("")
	if _ = AtIndex(bad, 3); text(bad) != "video_id: is missing; it takes 1 to 256 bytes" {
		t.Errorf("the error that was given is now %q, want it unchanged", bad)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	var id *IDError
	if !errors.As(err, &id) {
		return "not an *IDError: " + err.Error()
	}
	return err.Error()
}

// Every acceptable id survives the way through its two keys.
func FuzzRoundTrip(f *testing.F) {
	for _, id := range []string{"10001", "count:", "count:a", "a[b]*", "日本語", "\xff", ""} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if CheckVideoID(id) != nil {
			return
		}
		k := New("video")
		if got, count, ok := k.Parse(k.Online(id)); !ok || count || got != id {
			t.Errorf("hash of %q parsed as %q, %v, %v", id, got, count, ok)
		}
		if got, count, ok := k.Parse(k.Count(id)); !ok || !count || got != id {
			t.Errorf("count of %q parsed as %q, %v, %v", id, got, count, ok)
		}
	})
}
