package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainViewer(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // "": left to the decoder
		`{"viewer_id":"u1"}`:                  "u1",
		"\t{ \"viewer_id\" :\r\n\"u 1\" } \n": "u 1",
		`{"viewer_id":"日本語😀"}`:                "日本語😀",
		`{"viewer_id":""}`:                    "",
		`{"viewer_id":"a\u0062"}`:             "",
		"{\"viewer_id\":\"a\x01\"}":           "",
		"{\"viewer_id\":\"a\xff\"}":           "",
		"{\"viewer_id\":\"a\"}\xff":           "",
		`{"viewer_id":"a"`:                    "",
		`{"viewer_id":"a`:                     "",
		`{"viewer_id":"a"}}`:                  "",
		`{"viewer_id":"a",}`:                  "",
		`{"viewer_id":7}`:                     "",
		`{"viewer_id" "a"}`:                   "",
		`{"video_id":"a"}`:                    "",
		`{"viewer_id":"a","viewer_id":"b"}`:   "",
		`{"viewer_id":"a","recorded_at":1}`:   "",
		`"viewer_id":"a"`:                     "",
		``:                                    "",
	}
	for input, want := range tests {
		if got, ok := plainViewer([]byte(input)); ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %t, want %q", input, got, ok, want)
		}
	}
}

func TestPlainPlays(t *testing.T) {
	t.Parallel()
	got, ok := plainPlays([]byte(` {"plays": [{"video_id": "a", "viewer_id": "u1"}, {"video_id":"","viewer_id":"日"} ] }`))
	want := playsBody{videoIDs: []string{"a", ""}, viewerIDs: []string{"u1", "日"}, blank: []bool{false, false}, tokens: []string{"", ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(playsBody{})); diff != "" || !ok {
		t.Errorf("plays (-want +got), ok %t:\n%s", ok, diff)
	}
	const one = `{"video_id":"a","viewer_id":"u"}`
	if _, ok := plainPlays(fmt.Appendf(nil, `{"plays":[%s%s]}`, one, strings.Repeat(","+one, maxPlays-1))); !ok {
		t.Errorf("%d plays are left to the decoder", maxPlays)
	}
	for name, input := range map[string]string{
		"none":          `{"plays":[]}`,
		"one too many":  `{"plays":[` + one + strings.Repeat(","+one, maxPlays) + `]}`,
		"another order": `{"plays":[{"viewer_id":"u","video_id":"a"}]}`,
		"twice":         `{"plays":[` + one + `],"plays":[` + one + `]}`,
		"comma":         `{"plays":[` + one + `,]}`,
		"no comma":      `{"plays":[` + one + one + `]}`,
		"open":          `{"plays":[` + one,
		"more":          `{"plays":[` + one + `]} {}`,
		"not UTF-8":     "{\"plays\":[{\"video_id\":\"\xff\",\"viewer_id\":\"u\"}]}",
	} {
		if _, ok := plainPlays([]byte(input)); ok {
			t.Errorf("%s: taken, want it left to the decoder", name)
		}
	}
}
