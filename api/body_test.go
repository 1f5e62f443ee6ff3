package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

var allFields = []string{fieldViewerID, fieldRecordedAt, fieldToken, fieldResumed}

func TestDecodeViewer(t *testing.T) {
	t.Parallel()
	tests := map[string]viewerBody{
		`{"viewer_id":"u1"}`:                                    {"u1", 0, "", false},
		"\t\r\n{ \"viewer_id\" : \"u1\" }\n":                    {"u1", 0, "", false},
		`{"viewer_id":"u1","recorded_at":1700000000}`:           {"u1", 1700000000, "", false},
		`{"recorded_at":1700000000,"viewer_id":"u1"}`:           {"u1", 1700000000, "", false},
		`{"viewer_id":"u1","recorded_at":0}`:                    {"u1", 0, "", false},
		`{"viewer_id":"u1","recorded_at":null}`:                 {"u1", 0, "", false},
		`{"viewer_id":"u1","recorded_at":253402300799}`:         {"u1", maxUnix, "", false},
		`{"\u0076iewer_id":"u1"}`:                               {"u1", 0, "", false},
		`{"viewer_id":"日本語😀"}`:                                  {"日本語😀", 0, "", false},
		`{"viewer_id":"\ud83d\ude00\uD83D\uDE00"}`:              {"😀😀", 0, "", false},
		`{"viewer_id":"\\ud800"}`:                               {`\ud800`, 0, "", false},
		`{"viewer_id":"\\\\\ud83d\ude00"}`:                      {`\\😀`, 0, "", false},
		`{"viewer_id":"\ufffd\u0000\"\/"}`:                      {"\ufffd\x00\"/", 0, "", false},
		"{\"viewer_id\":\"\ufffd\"}":                            {"\ufffd", 0, "", false},
		`{"viewer_id":"` + strings.Repeat(`\u00e9`, 600) + `"}`: {strings.Repeat("é", 600), 0, "", false},
		`{}`:                                    {"", 0, "", false}, // enough where the token names the viewer
		`{"recorded_at":1}`:                     {"", 1, "", false},
		`{"token":"a.b.c"}`:                     {"", 0, "a.b.c", false},
		`{"token":null,"viewer_id":"u1"}`:       {"u1", 0, "", false},
		`{"viewer_id":"u1","token":""}`:         {"u1", 0, "", false},
		`{"viewer_id":"u1","token":"\u0061.b"}`: {"u1", 0, "a.b", false},
		`{"viewer_id":"u1","resumed":true}`:     {"u1", 0, "", true},
		`{"viewer_id":"u1","resumed":null}`:     {"u1", 0, "", false},
		`{"resumed":false,"viewer_id":"u1"}`:    {"u1", 0, "", false},
	}
	for input, want := range tests {
		got, err := decodeViewer([]byte(input), allFields...)
		if err != nil {
			t.Errorf("%s: %v", input, err)
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", input, got, want)
		}
	}
}

func TestDecodeViewerRefuses(t *testing.T) {
	t.Parallel()
	const badTime = "recorded_at: must be a time in Unix seconds, a whole number from 0 to 253402300799"
	tests := map[string]string{
		"":                                              "body: ends before its JSON object does",
		" ":                                             "body: ends before its JSON object does",
		"{":                                             "body: ends before its JSON object does",
		`{"viewer_id"`:                                  "body: ends before its JSON object does",
		`{"viewer_id":`:                                 "body: ends before its JSON object does",
		`{"viewer_id":"secret`:                          "body: ends before its JSON object does",
		`{"viewer_id":"secret"`:                         "body: ends before its JSON object does",
		`{"viewer_id":"secret",`:                        "body: ends before its JSON object does",
		`null`:                                          "body: must be a JSON object",
		`[]`:                                            "body: must be a JSON object",
		`[{"viewer_id":"secret"}]`:                      "body: must be a JSON object",
		`"secret"`:                                      "body: must be a JSON object",
		`42`:                                            "body: must be a JSON object",
		`true`:                                          "body: must be a JSON object",
		`secret`:                                        "body: not JSON at byte 0",
		`viewer_id=secret`:                              "body: not JSON at byte 0",
		"\ufeff" + `{"viewer_id":"u"}`:                  "body: not JSON at byte 0",
		`{'viewer_id':'secret'}`:                        "body: not JSON at byte 1",
		`{viewer_id:"secret"}`:                          "body: not JSON at byte 1",
		`{"viewer_id" "secret"}`:                        "body: not JSON at byte 13",
		`{"viewer_id":"secret",}`:                       "body: not JSON at byte 22",
		`{,"viewer_id":"secret"}`:                       "body: not JSON at byte 1",
		`{"viewer_id":"secret"]`:                        "body: not JSON at byte 21",
		`{"viewer_id":"a` + "\n" + `b"}`:                "body: not JSON at byte 15",
		`{"viewer_id":"\x41"}`:                          "body: not JSON at byte 15",
		`{"viewer_id":secret}`:                          "body: not JSON at byte 13",
		`{"viewer_id":"secret"} {}`:                     "body: data after the JSON object, near byte 24",
		`{"viewer_id":"secret"}secret`:                  "body: data after the JSON object, near byte 22",
		`{"viewer_id":"secret"}}`:                       "body: data after the JSON object, near byte 22",
		`{"viewer_id":7}`:                               "viewer_id: must be a string",
		`{"viewer_id":null}`:                            "viewer_id: must be a string",
		`{"viewer_id":""}`:                              "viewer_id: missing or empty",
		`{"viewer_id":true}`:                            "viewer_id: must be a string",
		`{"viewer_id":["secret"]}`:                      "viewer_id: must be a string",
		`{"viewer_id":{"secret":1}}`:                    "viewer_id: must be a string",
		`{"viewer_id":"a","viewer_id":"b"}`:             "viewer_id: given twice",
		`{"viewer_id":"a","viewer\u005fid":1}`:          "viewer_id: given twice",
		`{"viewer_id":"a","secret":"b"}`:                "body: unknown field near byte 25; known: viewer_id, recorded_at, token, resumed",
		`{"Viewer_ID":"secret"}`:                        "body: unknown field near byte 12; known: viewer_id, recorded_at, token, resumed",
		`{"":"secret"}`:                                 "body: unknown field near byte 3; known: viewer_id, recorded_at, token, resumed",
		"{\"viewer_id\":\"a\xff\"}":                     "body: not UTF-8 at byte 15",
		"{\"viewer_id\":\"\xed\xa0\x80\"}":              "body: not UTF-8 at byte 14",
		"{\"viewer_id\":\"\xc3":                         "body: not UTF-8 at byte 14",
		`{"viewer_id":"\ud800"}`:                        "body: half of a surrogate pair at byte 14",
		`{"viewer_id":"\uDC00"}`:                        "body: half of a surrogate pair at byte 14",
		`{"viewer_id":"a\ud800\ud83d\ude00"}`:           "body: half of a surrogate pair at byte 15",
		`{"viewer_id":"\ud83d\ude00\ude00"}`:            "body: half of a surrogate pair at byte 26",
		`{"viewer_id":"\\\ud800"}`:                      "body: half of a surrogate pair at byte 16",
		`{"viewer_id":"\ud83d`:                          "body: half of a surrogate pair at byte 14",
		`{"viewer_id":"a","recorded_at":1.5}`:           badTime,
		`{"viewer_id":"a","recorded_at":1.0}`:           badTime,
		`{"viewer_id":"a","recorded_at":1e9}`:           badTime,
		`{"viewer_id":"a","recorded_at":-1}`:            badTime,
		`{"viewer_id":"a","recorded_at":-0}`:            badTime,
		`{"viewer_id":"a","recorded_at":"1"}`:           badTime,
		`{"viewer_id":"a","recorded_at":[1]}`:           badTime,
		`{"viewer_id":"a","recorded_at":{}}`:            badTime,
		`{"viewer_id":"a","recorded_at":true}`:          badTime,
		`{"viewer_id":"a","recorded_at":1700000000000}`: badTime,
		`{"viewer_id":"a","recorded_at":9223372036854775808}`:     badTime,
		`{"viewer_id":"a","recorded_at":99999999999999999999999}`: badTime,
		`{"viewer_id":"a","resumed":"secret"}`:                    "resumed: must be true or false",
		`{"viewer_id":"a","resumed":1}`:                           "resumed: must be true or false",
		`{"viewer_id":"a","resumed":true,"resumed":true}`:         "resumed: given twice",
		`{"viewer_id":"a","token":7}`:                             "token: must be a string",
		`{"viewer_id":"a","token":["secret"]}`:                    "token: must be a string",
		`{"viewer_id":"a","token":{"secret":1}}`:                  "token: must be a string",
		`{"token":"secret","token":"secret"}`:                     "token: given twice",
		`{"viewer_id":"a","token":"\ud800"}`:                      "body: half of a surrogate pair at byte 26",
		`{"viewer_id":"a","recorded_at":01}`:                      "body: not JSON at byte 32",
	}
	for input, want := range tests {
		_, err := decodeViewer([]byte(input), allFields...)
		p, ok := errors.AsType[*problem](err)
		if !ok || p.Status != http.StatusBadRequest || p.Detail != want {
			t.Errorf("%q: got %v, want 400 %s", input, err, want)
		}
	}
}

func TestDecodeViewerKnowsTheRoutesFieldsOnly(t *testing.T) {
	t.Parallel()
	_, err := decodeViewer([]byte(`{"viewer_id":"a","recorded_at":1}`), fieldViewerID)
	if want := "body: unknown field near byte 30; known: viewer_id"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadBodyContentType(t *testing.T) {
	t.Parallel()
	const accepted = 0
	tests := map[string]int{
		"":                                    accepted,
		"application/json":                    accepted,
		"application/json; charset=utf-8":     accepted,
		"Application/JSON ;charset=\"utf-8\"": accepted,
		"text/plain":                          accepted,
		"text/plain;charset=UTF-8":            accepted,
		"application/x-www-form-urlencoded":   http.StatusUnsupportedMediaType,
		"multipart/form-data; boundary=x":     http.StatusUnsupportedMediaType,
		"application/json5":                   http.StatusUnsupportedMediaType,
		"application/problem+json":            http.StatusUnsupportedMediaType,
		"text/html":                           http.StatusUnsupportedMediaType,
		"json":                                http.StatusUnsupportedMediaType,
	}
	for contentType, want := range tests {
		got, detail := readBodyStatus(t, contentType, strings.NewReader(`{"viewer_id":"u1"}`))
		if got != want {
			t.Errorf("%q: status = %d, want %d", contentType, got, want)
		}
		if named := "Content-Type: must be application/json or text/plain"; want != accepted && detail != named {
			t.Errorf("%q: detail = %q, want %q", contentType, detail, named)
		}
	}
}

func TestReadBodyLimit(t *testing.T) {
	t.Parallel()
	if got, _ := readBodyStatus(t, "", strings.NewReader(strings.Repeat(" ", maxBody))); got != 0 {
		t.Errorf("%d bytes: status = %d, want them read", maxBody, got)
	}
	got, detail := readBodyStatus(t, "", strings.NewReader(strings.Repeat(" ", maxBody+1)))
	if want := "body: larger than 4096 bytes"; got != http.StatusRequestEntityTooLarge || detail != want {
		t.Errorf("%d bytes: got %d %q, want 413 %q", maxBody+1, got, detail, want)
	}
}

func TestReadBodyBroken(t *testing.T) {
	t.Parallel()
	got, detail := readBodyStatus(t, "", iotest.ErrReader(errors.New("reset by 192.0.2.1")))
	if want := "body: could not be read to its end"; got != http.StatusBadRequest || detail != want {
		t.Errorf("got %d %q, want 400 %q", got, detail, want)
	}
}

// readBodyStatus returns what a body is refused with, or 0.
func readBodyStatus(t *testing.T, contentType string, body io.Reader) (status int, detail string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	_, err := readBody(httptest.NewRecorder(), r, maxBody)
	if p, ok := errors.AsType[*problem](err); ok {
		return p.Status, p.Detail
	}
	if err != nil {
		t.Errorf("error is not a problem: %v", err)
	}
	return 0, ""
}

// details are all that a refused body is told: nothing of the input but positions in it.
var details = regexp.MustCompile(`^(` +
	`body: (ends before its JSON object does` +
	`|not JSON at byte N|must be a JSON object|data after the JSON object, near byte N` +
	`|unknown field near byte N; known: viewer_id, recorded_at, token, resumed` +
	`|not UTF-8 at byte N|half of a surrogate pair at byte N)` +
	`|viewer_id: missing or empty|(viewer_id|token): (must be a string|given twice)` +
	`|resumed: (must be true or false|given twice)` +
	`|recorded_at: (must be a time in Unix seconds, a whole number from N to N|given twice))$`)

var numbers = regexp.MustCompile(`(byte|from|to) \d+`)

func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[1]`, `{"viewer_id":"u1"}`, `{"viewer_id":"u1","recorded_at":1700000000}`,
		`{"viewer_id":"u1","recorded_at":1e999}`, `{"viewer_id":"u1","resumed":true}`, `{"viewer_id":"\ud83d\ude00"}`, `{"viewer_id":"\ud83d"}`,
		`{"viewer_id":"\\u"}`, `{"viewer_id":"a","viewer_id":"b"}`, `{"secret":1}`, `{"viewer_id":"u1"}{`,
		"{\"viewer_id\":\"\xff\"}", `{"viewer_id":{"a":[{}]}}`, `{"viewer_id":"u1",}`,
		`{"viewer_id":""`, `{"viewer_id":"","token":"a.b.c"}`,
		`{"token":"a.b.c"}`, `{"viewer_id":"u1","token":null}`, `{"viewer_id":"u1","token":{}}`, `{"token":"a","token":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeViewer(data, allFields...)
		if err != nil {
			checkRefusal(t, err, details)
			return
		}
		var want struct {
			ViewerID   string `json:"viewer_id"`
			RecordedAt int64  `json:"recorded_at"`
			Token      string `json:"token"`
			Resumed    bool   `json:"resumed"`
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("accepted %q, which is not JSON: %v", data, err)
		}
		if got != (viewerBody{want.ViewerID, want.RecordedAt, want.Token, want.Resumed}) || !utf8.ValidString(got.viewerID+got.token) {
			t.Errorf("%q: got %+v, want %+v", data, got, want)
		}
	})
}

func checkRefusal(t *testing.T, err error, details *regexp.Regexp) {
	t.Helper()
	p, ok := errors.AsType[*problem](err)
	if !ok || p.Status != http.StatusBadRequest {
		t.Fatalf("refused with %v, want a 400 problem", err)
	}
	if plain := numbers.ReplaceAllString(p.Detail, "$1 N"); !details.MatchString(plain) || len(p.Detail) >= 300 {
		t.Errorf("detail = %q, want one of ours", p.Detail)
	}
}
