package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodePlays(t *testing.T) {
	t.Parallel()
	type list []string
	tests := map[string]struct{ videos, viewers, tokens list }{
		`{"plays":[]}`:                                      {nil, nil, nil},
		"{ \"plays\" :\t[\n] }":                             {nil, nil, nil},
		`{"plays":[{}]}`:                                    {list{""}, list{""}, list{""}}, // which is the recorder's to refuse, with the others recorded
		`{"plays":[{"video_id":"10001"}]}`:                  {list{"10001"}, list{""}, list{""}},
		`{"plays":[{"video_id":"10001","viewer_id":"u1"}]}`: {list{"10001"}, list{"u1"}, list{""}},
		`{"plays":[{"viewer_id":"u1","video_id":"10001"},{"video_id":"\u0031","viewer_id":"日😀"}]}`:       {list{"10001", "1"}, list{"u1", "日😀"}, list{"", ""}},
		`{"plays":[{"video_id":"a","viewer_id":"b"},{"video_id":"a","viewer_id":"b"}]}`:                  {list{"a", "a"}, list{"b", "b"}, list{"", ""}},
		`{"plays":[{"token":"x.y.z","video_id":"a"},{"token":null,"viewer_id":"b"},{"token":"\u0078"}]}`: {list{"a", "", ""}, list{"", "b", ""}, list{"x.y.z", "", "x"}},
	}
	for input, want := range tests {
		got, err := decodePlays([]byte(input), "")
		if err != nil {
			t.Errorf("%s: %v", input, err)
		}
		if diff := cmp.Diff([]list{want.videos, want.viewers, want.tokens}, []list{got.videoIDs, got.viewerIDs, got.tokens}); diff != "" {
			t.Errorf("%s: plays (-want +got):\n%s", input, diff)
		}
	}
}

func TestDecodePlaysRefuses(t *testing.T) {
	t.Parallel()
	const ends = "body: ends before its JSON object does"
	three := `{"plays":[` + strings.Repeat(`{"video_id":"10001","viewer_id":"secret"},`, 3)
	tests := map[string]string{
		``:                                      ends,
		`{`:                                     ends,
		`{"plays"`:                              ends,
		`{"plays":`:                             ends,
		`{"plays":[`:                            ends,
		`{"plays":[{"video_id":"sec`:            ends,
		`{"plays":[{"video_id":"secret"}`:       ends,
		`{"plays":[{"video_id":"secret"}]`:      ends,
		`{}`:                                    "plays: missing",
		`null`:                                  "body: must be a JSON object",
		`[{"video_id":"secret"}]`:               "body: must be a JSON object",
		`{"plays":null}`:                        "plays: must be an array",
		`{"plays":{}}`:                          "plays: must be an array",
		`{"plays":"secret"}`:                    "plays: must be an array",
		`{"plays":7}`:                           "plays: must be an array",
		`{"plays":[null]}`:                      "plays[0]: must be an object",
		`{"plays":["secret"]}`:                  "plays[0]: must be an object",
		`{"plays":[[{"video_id":"secret"}]]}`:   "plays[0]: must be an object",
		`{"plays":[{},7]}`:                      "plays[1]: must be an object",
		`{"plays":[],"plays":[]}`:               "plays: given twice",
		`{"plays":[],"secret":1}`:               "body: unknown field near byte 20; known: plays",
		`{"Plays":[]}`:                          "body: unknown field near byte 8; known: plays",
		`{"viewer_id":"secret"}`:                "body: unknown field near byte 12; known: plays",
		`{"plays":[]} {}`:                       "body: data after the JSON object, near byte 14",
		`{"plays":[]}]`:                         "body: data after the JSON object, near byte 12",
		`{"plays":[}`:                           "body: not JSON at byte 10",
		`{"plays":[{]}`:                         "body: not JSON at byte 11",
		`{"plays":[{}}`:                         "body: not JSON at byte 12",
		`{"plays":[{},]}`:                       "body: not JSON at byte 13",
		`{"plays":[{} {}]}`:                     "body: not JSON at byte 13",
		`{"plays":[{"video_id":"secret",}]}`:    "body: not JSON at byte 31",
		`{"plays":[secret]}`:                    "body: not JSON at byte 10",
		`{"plays":[{"video_id":"\ud800"}]}`:     "body: half of a surrogate pair at byte 23",
		"{\"plays\":[{\"video_id\":\"\xff\"}]}": "body: not UTF-8 at byte 23",
		three + `{"viewer_id":7}]}`:             "plays[3].viewer_id: must be a string",
		three + `{"viewer_id":null}]}`:          "plays[3].viewer_id: must be a string",
		three + `{"video_id":["secret"]}]}`:     "plays[3].video_id: must be a string",
		three + `{"video_id":{"secret":[]}}]}`:  "plays[3].video_id: must be a string",
		three + `{"viewer_id":"secret","viewer_id":"secret"}]}`: "plays[3].viewer_id: given twice",
		`{"plays":[{"video_id":"a","recorded_at":1}]}`:          "body: unknown field near byte 39; known: video_id, viewer_id, token",
		three + `{"token":7}]}`:                                 "plays[3].token: must be a string",
		three + `{"token":{"secret":[]}}]}`:                     "plays[3].token: must be a string",
		three + `{"token":"secret","token":null}]}`:             "plays[3].token: given twice",
		`{"plays":[],"token":"secret"}`:                         "body: unknown field near byte 19; known: plays",
		`{"plays":[{"secret":"a"}]}`:                            "body: unknown field near byte 19; known: video_id, viewer_id, token",
	}
	for input, want := range tests {
		_, err := decodePlays([]byte(input), "")
		p, ok := errors.AsType[*problem](err)
		if !ok || p.Status != http.StatusBadRequest || p.Detail != want {
			t.Errorf("%q: got %v, want 400 %s", input, err, want)
		}
	}
}

// A body that is refused is not read to its end first.
func TestDecodePlaysStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	_, err := decodePlays([]byte(`{"plays":[{}`+strings.Repeat(",{}", maxPlays)+`, and no JSON`), "")
	if want := "plays: more than 1000"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// playsDetails are all that a refused batch is told.
var playsDetails = regexp.MustCompile(`^(` +
	`body: (ends before its JSON object does` +
	`|not JSON at byte N|must be a JSON object|data after the JSON object, near byte N` +
	`|unknown field near byte N; known: (plays|video_id, viewer_id, token)` +
	`|not UTF-8 at byte N|half of a surrogate pair at byte N)` +
	`|plays: (missing|must be an array|more than 1000|given twice)` +
	`|plays\[\d+\]: must be an object` +
	`|plays\[\d+\]\.(video_id|viewer_id|token): (must be a string|given twice))$`)

func FuzzPlays(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"plays":[]}`, `{"plays":null}`, `{"plays":[[]]}`, `{"plays":[{}]}`, `{"plays":[{]}`, `{"plays":[}`,
		`{"plays":[{"video_id":"10001","viewer_id":"u1"}]}`, `{"plays":[{"video_id":"10001","viewer_id":1e999}]}`,
		`{"plays":[{"viewer_id":"\ud83d\ude00"},{"video_id":"\\u"}]}`, `{"plays":[{"viewer_id":"\ud83d"}]}`,
		`{"plays":[{"video_id":"a","video_id":"b"}]}`, `{"plays":[],"plays":[]}`, `{"plays":[{}]}{`, `{"plays":[{},]}`,
		`{"plays":[{"secret":{"a":[{}]}}]}`, "{\"plays\":[{\"video_id\":\"\xff\"}]}",
		`{"plays":[{}` + strings.Repeat(",{}", maxPlays) + `]}`,
		`{"plays":[{"token":"a.b.c"},{"token":null},{"token":7}]}`, `{"plays":[],"token":"a"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodePlays(data, "")
		if err != nil {
			checkRefusal(t, err, playsDetails)
			return
		}
		var want struct {
			Plays []struct {
				VideoID  string `json:"video_id"`
				ViewerID string `json:"viewer_id"`
				Token    string `json:"token"`
			} `json:"plays"`
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("accepted %q, which is not JSON: %v", data, err)
		}
		n := len(want.Plays)
		if len(got.videoIDs) != n || len(got.viewerIDs) != n || len(got.tokens) != n || n > maxPlays {
			t.Fatalf("%q: got %+v, want %d plays", data, got, n)
		}
		for i, play := range want.Plays {
			if got.videoIDs[i] != play.VideoID || got.viewerIDs[i] != play.ViewerID || got.tokens[i] != play.Token {
				t.Errorf("%q: play %d is %q by %q with %q, want %+v", data, i, got.videoIDs[i], got.viewerIDs[i], got.tokens[i], play)
			}
		}
	})
}
