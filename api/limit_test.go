package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headcount/api"
)

// fakeLimiter lets one client record this many and no more.
type fakeLimiter struct {
	left, burst int
	wait        time.Duration // told to who is refused
	clients     map[netip.Addr]bool
}

func (l *fakeLimiter) Take(client netip.Addr, n int) time.Duration {
	l.clients[client] = true
	if n > l.left {
		return l.wait
	}
	l.left -= n
	return 0
}

func (l *fakeLimiter) Burst() int { return l.burst }

var client = netip.MustParseAddr("203.0.113.9")

// limitedHandler has a limiter that lets pass left plays and leaves.
func limitedHandler(store *fakeStore, left int) (http.Handler, *fakeLimiter, *prometheus.Registry) {
	l := &fakeLimiter{left: left, burst: 100, wait: 1001 * time.Millisecond, clients: map[netip.Addr]bool{}}
	reg := prometheus.NewPedanticRegistry()
	o := options(store)
	o.Limiter, o.Registerer = l, reg
	o.ClientAddr = func(*http.Request) netip.Addr { return client }
	return api.Handler(o), l, reg
}

func checkRefused(t *testing.T, reg *prometheus.Registry, byRate, byViewers int) {
	t.Helper()
	want := fmt.Sprintf(`
# HELP headcount_refused_total Plays and leaves beyond a limit, by reason: rate (of the client's address; a batch refused unread counts once), viewers (of the video).
# TYPE headcount_refused_total counter
headcount_refused_total{reason="rate"} %d
headcount_refused_total{reason="viewers"} %d
`, byRate, byViewers)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "headcount_refused_total"); err != nil {
		t.Error(err)
	}
}

const tooMany = "too many plays and leaves from this address, try again later"

// batchOf is the body of a batch of n plays.
func batchOf(n int) string {
	plays := strings.TrimSuffix(strings.Repeat(`{"video_id":"10001","viewer_id":"u1"},`, n), ",")
	return `{"plays":[` + plays + `]}`
}

func TestEachPlayAndLeaveIsTaken(t *testing.T) {
	t.Parallel()
	const play, leave, plays = "/v1/videos/10001/play", "/v1/videos/10001/leave", "/v1/plays"
	const one = `{"viewer_id":"u1"}`
	tests := map[string]struct {
		method, path, body string
		status, taken      int
	}{
		"play":                     {"POST", play, one, 200, 1},
		"play of the id /":         {"POST", "/v1/videos/%2F/play", one, 200, 1},
		"leave":                    {"POST", leave, one, 204, 1},
		"a play that is malformed": {"POST", play, `{`, 400, 1},
		"a batch":                  {"POST", plays, batchOf(7), 200, 7},
		"a batch of none":          {"POST", plays, batchOf(0), 200, 1}, // no body is free
		"a batch of all that may":  {"POST", plays, batchOf(50), 200, 50},
		"a malformed batch":        {"POST", plays, `{`, 400, 1},
		"a batch that is too many": {"POST", plays, batchOf(51), 429, 1},
		"a lookup":                 {"GET", "/v1/videos/10001/viewers", "", 200, 0},
		"a lookup of several":      {"GET", "/v1/viewers?video_id=1&video_id=2", "", 200, 0},
		"a method not allowed":     {"GET", play, "", 405, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, limiter, _ := limitedHandler(newStore(), 50)
			if res := send(t, h, tt.method, tt.path, tt.body); res.status != tt.status {
				t.Errorf("status = %d, want %d", res.status, tt.status)
			}
			if got := 50 - limiter.left; got != tt.taken {
				t.Errorf("%d taken, want %d", got, tt.taken)
			}
			for asked := range limiter.clients {
				if asked != client {
					t.Errorf("asked for %s, want %s", asked, client)
				}
			}
		})
	}
}

func TestBeyondTheRate(t *testing.T) {
	t.Parallel()
	for route, req := range requests {
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			store := newStore()
			h, _, reg := limitedHandler(store, 0)
			if req[0] == http.MethodGet {
				if res := send(t, h, req[0], req[1], req[2]); res.status != http.StatusOK {
					t.Errorf("status = %d, want 200: lookups are not limited", res.status)
				}
				checkRefused(t, reg, 0, 0)
				return
			}
			r := httptest.NewRequestWithContext(t.Context(), req[0], req[1], unread{t})
			r.Header.Set("Origin", shop)
			res := serve(h, r)
			checkProblem(t, res, http.StatusTooManyRequests, tooMany)
			checkHeaders(t, res, map[string]string{
				"Retry-After":                   "2", // 1.001 s, rounded up
				"Access-Control-Allow-Origin":   "*", // a page can read it
				"Access-Control-Expose-Headers": "Retry-After",
			})
			if got := store.Calls(); len(got) != 0 {
				t.Errorf("calls = %v, want none", got)
			}
			checkRefused(t, reg, 1, 0)
		})
	}
}

// unread is a body that must not be read: that is work done for nothing.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, errors.New("not to be read")
}

func TestBatchBeyondTheRate(t *testing.T) {
	t.Parallel()
	store := newStore()
	h, _, reg := limitedHandler(store, 5)
	res := send(t, h, "POST", "/v1/plays", batchOf(6))
	checkProblem(t, res, http.StatusTooManyRequests, tooMany)
	checkHeaders(t, res, map[string]string{"Retry-After": "2"})
	checkRefused(t, reg, 6, 0)

	// One that could never be taken is not told to try again.
	res = send(t, h, "POST", "/v1/plays", batchOf(101))
	checkProblem(t, res, http.StatusTooManyRequests, "plays: 101, more than the 100 that one address may send at once")
	checkHeaders(t, res, map[string]string{"Retry-After": ""})
	checkRefused(t, reg, 6+101, 0)
	if got := store.Calls(); len(got) != 0 {
		t.Errorf("calls = %v, want none", got)
	}
}

func TestFullVideoInABatch(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.playErrs = map[int]error{0: videoFull{}, 2: badID{"viewer_id", "too long"}, 3: videoFull{}}
	h, _, reg := limitedHandler(store, 10)
	res := send(t, h, "POST", "/v1/plays", batchOf(4))
	want := `{"recorded":1,"recorded_at":1700000000,"beat_after":150,"errors":[` +
		`{"index":0,"detail":"the video has as many viewers as it may have"},` +
		`{"index":2,"detail":"viewer_id: too long"},` +
		`{"index":3,"detail":"the video has as many viewers as it may have"}]}` + "\n"
	if res.status != http.StatusOK || res.body != want {
		t.Errorf("got %d %s, want 200 %s", res.status, res.body, want)
	}
	checkRefused(t, reg, 0, 2)

	store.playErrs[1], store.playErrs[2] = videoFull{}, videoFull{}
	if res := send(t, h, "POST", "/v1/plays", batchOf(4)); res.status != http.StatusOK || !strings.Contains(res.body, `"recorded":0`) {
		t.Errorf("all refused: got %d %s, want 200 with none recorded", res.status, res.body)
	}
}

// The time to try again at a full video is that of the next beat, as it is now.
func TestFullVideo(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.hook = func(context.Context) error { return videoFull{} }
	reg := prometheus.NewPedanticRegistry()
	o := options(store)
	o.Registerer = reg
	o.BeatAfter = func() time.Duration { return 7 * time.Second }
	res := send(t, api.Handler(o), "POST", "/v1/videos/10001/play", `{"viewer_id":"secret"}`)
	checkProblem(t, res, http.StatusTooManyRequests, "the video has as many viewers as it may have")
	checkHeaders(t, res, map[string]string{"Retry-After": "7"})
	checkRefused(t, reg, 0, 1)
}
