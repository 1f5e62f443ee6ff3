package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/api"
)

// fakeTokens has tokens such as "10001/u1": video and viewer.
type fakeTokens struct{}

func (fakeTokens) Verify(token string) (videoID, viewerID string, err error) {
	videoID, viewerID, ok := strings.Cut(token, "/")
	if !ok {
		return "", "", errors.New("expired (exp)")
	}
	return videoID, viewerID, nil
}

// sendToken sends a request with an Authorization header, unless that is empty,
// to a handler that wants tokens.
func sendToken(t *testing.T, path, authorization, contentType, body string) (answer, *fakeStore) {
	t.Helper()
	store := newStore()
	o := options(store)
	o.Tokens = fakeTokens{}
	r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return serve(api.Handler(o), r), store
}

const (
	missingToken = "token: missing; it goes into the header, as Authorization: Bearer, or into the body"
	expiredToken = "token: expired (exp)"
	otherVideo   = "token: for another video (vid)"
	otherViewer  = "token: for another viewer (sub)"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		authorization, body string
		status              int // of a refusal
		detail              string
	}{
		"header":                       {"Bearer 10001/u1", `{"viewer_id":"u1"}`, 0, ""},
		"header, scheme in other case": {"bearer  10001/u1 ", `{"viewer_id":"u1"}`, 0, ""},
		"header, viewer left out":      {"Bearer 10001/u1", `{}`, 0, ""},
		"body":                         {"", `{"viewer_id":"u1","token":"10001/u1"}`, 0, ""},
		"body, viewer left out":        {"", `{"token":"10001/u1"}`, 0, ""},
		"body outweighs header":        {"Bearer secret", `{"token":"10001/u1"}`, 0, ""},
		"body beside another scheme":   {"Basic c2VjcmV0", `{"token":"10001/u1"}`, 0, ""},
		"header beside null":           {"Bearer 10001/u1", `{"token":null}`, 0, ""},
		"none":                         {"", `{"viewer_id":"u1"}`, 401, missingToken},
		"none, and no viewer":          {"", `{}`, 401, missingToken},
		"null":                         {"", `{"viewer_id":"u1","token":null}`, 401, missingToken},
		"empty":                        {"", `{"viewer_id":"u1","token":""}`, 401, missingToken},
		"empty header":                 {"Bearer ", `{"viewer_id":"u1"}`, 401, missingToken},
		"another scheme":               {"Basic 10001/u1", `{"viewer_id":"u1"}`, 401, missingToken},
		"no scheme":                    {"10001/u1", `{"viewer_id":"u1"}`, 401, missingToken},
		"bad header":                   {"Bearer secret", `{"viewer_id":"u1"}`, 401, expiredToken},
		"bad body":                     {"", `{"viewer_id":"u1","token":"secret"}`, 401, expiredToken},
		"bad body outweighs header":    {"Bearer 10001/u1", `{"viewer_id":"u1","token":"secret"}`, 401, expiredToken},
		"another video":                {"Bearer 10002/u1", `{"viewer_id":"u1"}`, 403, otherVideo},
		"a video that begins alike":    {"Bearer 1000/u1", `{"viewer_id":"u1"}`, 403, otherVideo},
		"another viewer":               {"Bearer 10001/u2", `{"viewer_id":"u1"}`, 403, otherViewer},
		"a viewer in another case":     {"", `{"viewer_id":"U1","token":"10001/u1"}`, 403, otherViewer},
	}
	for name, tt := range tests {
		for _, op := range []string{"play", "leave"} {
			for _, contentType := range []string{"application/json", "text/plain;charset=UTF-8"} {
				t.Run(name+"/"+op+"/"+contentType, func(t *testing.T) {
					t.Parallel()
					res, store := sendToken(t, "/v1/videos/10001/"+op, tt.authorization, contentType, tt.body)
					if tt.status == 0 {
						if diff := cmp.Diff([]call{{op, "10001", "u1", 0}}, store.Calls()); diff != "" {
							t.Errorf("answered %d %s, calls (-want +got):\n%s", res.status, res.body, diff)
						}
						return
					}
					checkProblem(t, res, tt.status, tt.detail)
					challenge := map[int]string{401: "Bearer", 403: ""}[tt.status]
					checkHeaders(t, res, map[string]string{"WWW-Authenticate": challenge, "Retry-After": ""})
					if got := store.Calls(); len(got) != 0 {
						t.Errorf("calls = %v, want none", got)
					}
				})
			}
		}
	}
}

func TestLeaveWithTokenIsGuarded(t *testing.T) {
	t.Parallel()
	_, store := sendToken(t, "/v1/videos/10001/leave", "", "text/plain", `{"token":"10001/u1","recorded_at":7}`)
	if diff := cmp.Diff([]call{{"leave", "10001", "u1", 7}}, store.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// One page is to work with and without keys.
func TestTokensAreIgnoredWithoutKeys(t *testing.T) {
	t.Parallel()
	for op, path := range map[string]string{"play": "/v1/videos/10001/play", "leave": "/v1/videos/10001/leave"} {
		for _, token := range []string{`"10002/u2"`, `"secret"`, `""`, `null`} {
			store := newStore()
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(`{"viewer_id":"u1","token":`+token+`}`))
			r.Header.Set("Authorization", "Bearer secret")
			res := serve(api.Handler(options(store)), r)
			if diff := cmp.Diff([]call{{op, "10001", "u1", 0}}, store.Calls()); diff != "" {
				t.Errorf("%s with %s: answered %d %s, calls (-want +got):\n%s", op, token, res.status, res.body, diff)
			}
		}
	}
	store := newStore()
	send(t, api.Handler(options(store)), "POST", "/v1/plays", `{"plays":[{"video_id":"10001","viewer_id":"u1","token":"10002/u2"}]}`)
	if diff := cmp.Diff([]call{{"play all", "10001", "u1", 0}}, store.Calls()); diff != "" {
		t.Errorf("calls of a batch (-want +got):\n%s", diff)
	}
}

// Without tokens to name the viewer, the body must.
func TestViewerIsMissing(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"play", "leave"} {
		for _, body := range []string{`{}`, `{"viewer_id":""}`, `{"token":"10001/u1"}`} {
			store := newStore()
			res := send(t, api.Handler(options(store)), "POST", "/v1/videos/10001/"+op, body)
			checkProblem(t, res, http.StatusBadRequest, "viewer_id: missing or empty")
			if got := store.Calls(); len(got) != 0 {
				t.Errorf("%s %s: calls = %v, want none", op, body, got)
			}
		}
	}
}

func TestLookupsNeedNoToken(t *testing.T) {
	t.Parallel()
	o := options(newStore())
	o.Tokens = fakeTokens{}
	for _, path := range []string{"/v1/videos/10001/viewers", "/v1/viewers?video_id=10001"} {
		if res := send(t, api.Handler(o), "GET", path, ""); res.status != http.StatusOK {
			t.Errorf("%s: answered %d %s, want 200", path, res.status, res.body)
		}
	}
}

func TestPlaysWithTokens(t *testing.T) {
	t.Parallel()
	const plays = `{"plays":[` +
		`{"video_id":"a","viewer_id":"u1","token":"a/u1"},` + // 0
		`{"video_id":"b","viewer_id":"u1"},` +
		`{"video_id":"a","viewer_id":"u2","token":"a/u1"},` + // 2
		`{"video_id":"c","token":"c/u3"},` +
		`{"video_id":"b","token":"a/u1"},` + // 4
		`{"video_id":"a","viewer_id":"u1","token":"secret"},` +
		`{"viewer_id":"u1","token":"a/u1"},` + // 6
		`{"video_id":"a","viewer_id":"","token":"a/u1"}]}`
	refused := func(index int, detail string) string {
		return fmt.Sprintf(`{"index":%d,"detail":%q}`, index, detail)
	}
	always := []string{refused(2, otherViewer), refused(4, otherVideo), refused(5, expiredToken), refused(6, otherVideo), refused(7, "viewer_id: missing or empty")}
	tests := map[string]struct {
		authorization   string
		videos, viewers string
		errors          []string
	}{
		"none in the header": {"", "a,c", "u1,u3", append([]string{refused(1, missingToken)}, always...)},
		"the header's fits":  {"Bearer b/u1", "a,b,c", "u1,u1,u3", always},
		"it does not fit":    {"Bearer a/u1", "a,c", "u1,u3", append([]string{refused(1, otherVideo)}, always...)},
		"it is no good":      {"Bearer secret", "a,c", "u1,u3", append([]string{refused(1, expiredToken)}, always...)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, store := sendToken(t, "/v1/plays", tt.authorization, "application/json", plays)
			want := fmt.Sprintf(`{"recorded":%d,"recorded_at":1700000000,"beat_after":150,"errors":[%s]}`+"\n",
				8-len(tt.errors), strings.Join(tt.errors, ","))
			if diff := cmp.Diff(want, res.body); diff != "" || res.status != http.StatusOK {
				t.Errorf("answered %d, body (-want +got):\n%s", res.status, diff)
			}
			if diff := cmp.Diff([]call{{"play all", tt.videos, tt.viewers, 0}}, store.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// What the recorder says about a play is told of the right one, though others
// before it did not get that far.
func TestPlaysWithTokensNamesWhatWasNotRecorded(t *testing.T) {
	t.Parallel()
	const plays = `{"plays":[{"video_id":"a"},{"video_id":"b","token":"b/u1"},{"video_id":"c"},{"video_id":"d","token":"d/u1"}]}`
	store := newStore()
	store.playErrs = map[int]error{1: badID{"video_id", "is no good"}}
	o := options(store)
	o.Tokens = fakeTokens{}
	res := send(t, api.Handler(o), "POST", "/v1/plays", plays)
	want := `{"recorded":1,"recorded_at":1700000000,"beat_after":150,"errors":[` +
		`{"index":0,"detail":"` + missingToken + `"},{"index":2,"detail":"` + missingToken + `"},{"index":3,"detail":"video_id: is no good"}]}` + "\n"
	if diff := cmp.Diff(want, res.body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// A batch of which no token is any good was answered, not failed: sending it
// again would not help.
func TestPlaysWithoutAnyToken(t *testing.T) {
	t.Parallel()
	res, _ := sendToken(t, "/v1/plays", "", "application/json", `{"plays":[{"video_id":"a","viewer_id":"u1"}]}`)
	want := `{"recorded":0,"recorded_at":0,"beat_after":150,"errors":[{"index":0,"detail":"` + missingToken + `"}]}` + "\n"
	if res.status != http.StatusOK || res.body != want {
		t.Errorf("answered %d %s, want 200 %s", res.status, res.body, want)
	}
}

// Where Redis is down and a token is no good, the rest is worth sending again.
func TestPlaysWithTokensUnavailable(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.err = errors.New("HSET video:online:a u1: connection refused")
	o := options(store)
	o.Tokens = fakeTokens{}
	res := send(t, api.Handler(o), "POST", "/v1/plays", `{"plays":[{"video_id":"a","token":"a/u1"},{"video_id":"b"}]}`)
	checkProblem(t, res, http.StatusServiceUnavailable, "the count store is unavailable, try again")
}
