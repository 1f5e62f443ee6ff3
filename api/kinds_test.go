package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/api"
)

// kindOptions are those of a handler of films and live streams.
func kindOptions(films, lives *fakeStore) api.Options {
	o := options(nil)
	o.Recorder, o.Lookup = nil, nil
	o.Kinds = []api.Kind{{Name: "film", Recorder: films, Lookup: films}, {Name: "live", Recorder: lives, Lookup: lives}}
	return o
}

func TestKindsHaveRoutesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ method, path, body, op string }{
		{"POST", "/play", `{"viewer_id":"u1"}`, "play"},
		{"POST", "/leave", `{"viewer_id":"u1"}`, "leave"},
		{"GET", "/viewers", "", "viewers"},
	} {
		films, lives := newStore(), newStore()
		handler := api.Handler(kindOptions(films, lives))
		if res := send(t, handler, tt.method, "/v1/lives/10001"+tt.path, tt.body); res.status >= 300 {
			t.Errorf("%s: answered with %d %s", tt.op, res.status, res.body)
		}
		viewer := ""
		if tt.body != "" {
			viewer = "u1"
		}
		if diff := cmp.Diff([]call{{tt.op, "10001", viewer, 0}}, lives.Calls()); diff != "" {
			t.Errorf("%s: the live streams were asked (-want +got):\n%s", tt.op, diff)
		}
		if calls := films.Calls(); len(calls) != 0 {
			t.Errorf("%s: the films were asked %v, want nothing", tt.op, calls)
		}
		checkProblem(t, send(t, handler, tt.method, "/v1/videos/10001"+tt.path, tt.body), http.StatusNotFound, "no such path")
		checkProblem(t, send(t, handler, tt.method, "/v1/lives//play", tt.body), http.StatusBadRequest,
			"video_id: must not be empty, nor . or .. unless sent as %2E or %2E%2E")
	}
}

func TestKindOfQuestion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query, detail string
		films, lives  int // how often they are asked
	}{
		{"video_id=1", "", 1, 0},
		{"video_id=1&kind=film", "", 1, 0},
		{"kind=live&video_id=1", "", 0, 1},
		{"video_id=1&kind=secret", "kind: none of film, live", 0, 0},
		{"video_id=1&kind=", "kind: none of film, live", 0, 0},
		{"video_id=1&kind=live&kind=film", "kind: given twice", 0, 0},
		{"video_id=1&kind=live&x=1", "query: unknown parameter; known: video_id, kind", 0, 0},
		{"kind=live", "video_id: missing; give it once for each video", 0, 0},
	} {
		films, lives := newStore(), newStore()
		res := send(t, api.Handler(kindOptions(films, lives)), "GET", "/v1/viewers?"+tt.query, "")
		if tt.detail != "" {
			checkProblem(t, res, http.StatusBadRequest, tt.detail)
		} else if res.status != http.StatusOK {
			t.Errorf("%s: answered with %d %s", tt.query, res.status, res.body)
		}
		if got := [2]int{len(films.Calls()), len(lives.Calls())}; got != [2]int{tt.films, tt.lives} {
			t.Errorf("%s: films and live streams were asked %v times, want %d and %d", tt.query, got, tt.films, tt.lives)
		}
	}
}

func TestPlaysOfSeveralKinds(t *testing.T) {
	t.Parallel()
	films, lives := newStore(), newStore()
	lives.recordedAt = films.recordedAt + 1
	lives.playErrs = map[int]error{1: badID{"video_id", "is missing"}}
	body := `{"plays":[{"video_id":"1","viewer_id":"u1","kind":"live"},{"video_id":"1","viewer_id":"u1"},
		{"video_id":"2","viewer_id":"u2","kind":"secret"},{"kind":"live","viewer_id":"u3"},{"video_id":"3","viewer_id":"u3","kind":"film"},
		{"video_id":"4","viewer_id":"u4","kind":""}]}`
	res := send(t, api.Handler(kindOptions(films, lives)), "POST", "/v1/plays", body)
	want := `{"recorded":3,"recorded_at":1700000001,"beat_after":150,"errors":[{"index":2,"detail":"kind: none of film, live"},` +
		`{"index":3,"detail":"video_id: is missing"},{"index":5,"detail":"kind: none of film, live"}]}`
	if diff := cmp.Diff(want+"\n", res.body); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]call{{"play all", "1,3", "u1,u3", 0}}, films.Calls()); diff != "" {
		t.Errorf("the films were asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]call{{"play all", "1,", "u1,u3", 0}}, lives.Calls()); diff != "" {
		t.Errorf("the live streams were asked (-want +got):\n%s", diff)
	}
}

// One kind that cannot be recorded leaves the other's plays recorded.
func TestPlaysOfAKindThatFails(t *testing.T) {
	t.Parallel()
	films, lives := newStore(), newStore()
	films.err = errors.New("HSET film:online:1 u1: connection refused")
	body := `{"plays":[{"video_id":"1","viewer_id":"u1"},{"video_id":"1","viewer_id":"u1","kind":"live"}]}`
	res := send(t, api.Handler(kindOptions(films, lives)), "POST", "/v1/plays", body)
	want := `{"recorded":1,"recorded_at":1700000000,"beat_after":150,"errors":[{"index":0,"detail":"the count store is unavailable, try again"}]}`
	if diff := cmp.Diff(want+"\n", res.body); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// Without kinds the word means nothing.
func TestNoKinds(t *testing.T) {
	t.Parallel()
	handler := api.Handler(options(newStore()))
	checkProblem(t, send(t, handler, "GET", "/v1/viewers?video_id=1&kind=video", ""), http.StatusBadRequest,
		"query: unknown parameter; known: video_id")
	res := send(t, handler, "POST", "/v1/plays", `{"plays":[{"video_id":"1","viewer_id":"u1","kind":"video"}]}`)
	if res.status != http.StatusBadRequest || !strings.Contains(res.body, "known: video_id, viewer_id, token\"") {
		t.Errorf("a play with a kind: answered with %d %s, want 400 and the known fields", res.status, res.body)
	}
}

// liveTokens have tokens such as "10001/u1" for live streams, and refuse those of films, which begin with "film ".
type liveTokens struct{ fakeTokens }

type otherKind struct{ error }

func (otherKind) Forbidden() {}

func (l liveTokens) Verify(token string) (videoID, viewerID string, err error) {
	if strings.HasPrefix(token, "film ") {
		return "", "", otherKind{errors.New("for another kind (kind)")}
	}
	return l.fakeTokens.Verify(token)
}

func TestTokensByKind(t *testing.T) {
	t.Parallel()
	films, lives := newStore(), newStore()
	o := kindOptions(films, lives)
	o.Kinds[0].Tokens, o.Kinds[1].Tokens = fakeTokens{}, liveTokens{}
	handler := api.Handler(o)
	play := func(path, token, body string) answer {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		return serve(handler, r)
	}
	if res := play("/v1/lives/1/play", "1/u1", `{}`); res.status != http.StatusOK {
		t.Errorf("its own token: answered with %d %s", res.status, res.body)
	}
	checkProblem(t, play("/v1/lives/1/play", "film 1/u1", `{}`), http.StatusForbidden, "token: for another kind (kind)")
	res := play("/v1/plays", "film 1/u1", `{"plays":[{"video_id":"film 1","viewer_id":"u1"},{"video_id":"1","viewer_id":"u1","kind":"live"}]}`)
	want := `{"recorded":1,"recorded_at":1700000000,"beat_after":150,"errors":[{"index":1,"detail":"token: for another kind (kind)"}]}`
	if diff := cmp.Diff(want+"\n", res.body); diff != "" {
		t.Errorf("batch (-want +got):\n%s", diff)
	}
}
