package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headcount/api"
)

// playsBody is a batch of n plays, of the videos v0, v1, … by the viewers u0, u1, …
func playsBody(n int) string {
	plays := make([]string, n)
	for i := range plays {
		plays[i] = fmt.Sprintf(`{"video_id":"v%d","viewer_id":"u%d"}`, i, i)
	}
	return `{"plays":[` + strings.Join(plays, ",") + `]}`
}

func TestPlaysNamesWhatWasNotRecorded(t *testing.T) {
	t.Parallel()
	down := errors.New("HSET video:online:v1 u1: connection refused")
	bad := fmt.Errorf("check: %w", badID{"viewer_id", "has a control character"})
	const (
		badDetail  = `viewer_id: has a control character`
		downDetail = `the count store is unavailable, try again`
	)
	tests := map[string]struct {
		errs   map[int]error
		answer string
	}{
		"some bad": {
			map[int]error{0: bad, 2: bad},
			`{"recorded":1,"recorded_at":1700000000,"beat_after":150,"errors":[{"index":0,"detail":"` + badDetail + `"},{"index":2,"detail":"` + badDetail + `"}]}`,
		},
		"all bad": {
			map[int]error{0: bad, 1: bad, 2: bad},
			`{"recorded":0,"recorded_at":0,"beat_after":150,"errors":[{"index":0,"detail":"` + badDetail + `"},{"index":1,"detail":"` + badDetail + `"},{"index":2,"detail":"` + badDetail + `"}]}`,
		},
		"some unavailable": {
			map[int]error{1: down},
			`{"recorded":2,"recorded_at":1700000000,"beat_after":150,"errors":[{"index":1,"detail":"` + downDetail + `"}]}`,
		},
		"one bad, one unavailable": {
			map[int]error{0: bad, 1: down},
			`{"recorded":1,"recorded_at":1700000000,"beat_after":150,"errors":[{"index":0,"detail":"` + badDetail + `"},{"index":1,"detail":"` + downDetail + `"}]}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore()
			store.playErrs = tt.errs
			res := send(t, api.Handler(options(store)), "POST", "/v1/plays", playsBody(3))
			if res.status != http.StatusOK {
				t.Errorf("status = %d, want 200", res.status)
			}
			if diff := cmp.Diff(tt.answer+"\n", res.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			checkHeaders(t, res, map[string]string{"Cache-Control": "no-store", "Retry-After": ""})
		})
	}
}

// What was bad stays bad, but what could have been recorded was not.
func TestPlaysUnavailableButForBadOnes(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.err = errors.New("HSET video:online:v1 u1: connection refused")
	store.playErrs = map[int]error{2: badID{"video_id", "is missing"}}
	res := send(t, api.Handler(options(store)), "POST", "/v1/plays", playsBody(3))
	checkProblem(t, res, http.StatusServiceUnavailable, "the count store is unavailable, try again")
	checkHeaders(t, res, map[string]string{"Retry-After": "1"})
}

func TestPlaysLimit(t *testing.T) {
	t.Parallel()
	store := newStore()
	h := api.Handler(options(store))
	res := send(t, h, "POST", "/v1/plays", playsBody(1000))
	want := `{"recorded":1000,"recorded_at":1700000000,"beat_after":150,"errors":[]}` + "\n"
	if res.status != http.StatusOK || res.body != want {
		t.Errorf("1,000 plays: got %d %s, want 200 %s", res.status, res.body, want)
	}
	checkProblem(t, send(t, h, "POST", "/v1/plays", playsBody(1001)), http.StatusBadRequest, "plays: more than 1000")
	if got := len(store.Calls()); got != 1 {
		t.Errorf("calls = %d, want 1", got)
	}
}

func TestPlaysBodyLimit(t *testing.T) {
	t.Parallel()
	store := newStore()
	h := api.Handler(options(store))
	body := playsBody(1)
	body += strings.Repeat(" ", 1<<20-len(body))
	if res := send(t, h, "POST", "/v1/plays", body); res.status != http.StatusOK {
		t.Errorf("a body of 1 MiB: got %d %s, want 200", res.status, res.body)
	}
	checkProblem(t, send(t, h, "POST", "/v1/plays", body+" "), http.StatusRequestEntityTooLarge, "body: larger than 1048576 bytes")
	if got := len(store.Calls()); got != 1 {
		t.Errorf("calls = %d, want 1", got)
	}
}

// A thousand plays with the longest ids fit.
func TestPlaysWithLongestIDs(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", 256)
	play := fmt.Sprintf(`,{"video_id":%q,"viewer_id":%q}`, longest, longest)
	body := `{"plays":[` + strings.Repeat(play, 1000)[1:] + `]}`
	if res := send(t, api.Handler(options(newStore())), "POST", "/v1/plays", body); res.status != http.StatusOK {
		t.Errorf("got %d %s, want 200", res.status, res.body)
	}
}

func TestPlaysRefusesForms(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/plays", strings.NewReader("plays=1"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res := serve(api.Handler(options(newStore())), r)
	checkProblem(t, res, http.StatusUnsupportedMediaType, "Content-Type: must be application/json or text/plain")
}

// ids is a query for n videos.
func ids(n int) string {
	return strings.Repeat("&video_id=10001", n)[1:]
}

func TestBatchLimit(t *testing.T) {
	t.Parallel()
	res := send(t, api.Handler(options(newStore())), "GET", "/v1/viewers?"+ids(200), "")
	if got := strings.Count(res.body, `{"video_id":"10001",`); res.status != http.StatusOK || got != 200 {
		t.Errorf("200 ids: got %d with %d counts, want 200 with 200", res.status, got)
	}
}

func TestBatchRefusesQueries(t *testing.T) {
	t.Parallel()
	const (
		missing   = "video_id: missing; give it once for each video"
		unknown   = "query: unknown parameter; known: video_id"
		malformed = "query: not form-encoded; write an id's special characters as %XX"
	)
	tests := map[string]struct{ query, detail string }{
		"none":                {"", missing},
		"a question mark":     {"?", missing},
		"separators only":     {"?&&", missing},
		"too many":            {"?" + ids(201), "video_id: 201 given; one request takes up to 200"},
		"another parameter":   {"?secret=1", unknown},
		"one more parameter":  {"?video_id=10001&secret=1", unknown},
		"another case":        {"?Video_ID=10001", unknown},
		"without a name":      {"?=10001", unknown},
		"brackets":            {"?video_id[]=10001", unknown},
		"half an escape":      {"?video_id=secret%2", malformed},
		"no escape":           {"?video_id=secret%zz", malformed},
		"a bare per cent":     {"?video_id=10001&video_id=100%", malformed},
		"a semicolon":         {"?video_id=10001;video_id=10002", malformed},
		"an escape in a name": {"?video%zz=10001", malformed},
	}
	store := newStore()
	h := api.Handler(options(store))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			checkProblem(t, send(t, h, "GET", "/v1/viewers"+tt.query, ""), http.StatusBadRequest, tt.detail)
		})
	}
	if got := store.Calls(); len(got) != 0 {
		t.Errorf("calls = %v, want none", got)
	}
}

func TestBatchNamesTheBadID(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.err = badID{"video_id[1]", "is missing; it takes 1 to 256 bytes"}
	res := send(t, api.Handler(options(store)), "GET", "/v1/viewers?video_id=10001&video_id=", "")
	checkProblem(t, res, http.StatusBadRequest, "video_id[1]: is missing; it takes 1 to 256 bytes")
	if diff := cmp.Diff([]call{{"batch", "10001,", "", 0}}, store.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestBatchUnknown(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.asOf = time.Time{}
	res := send(t, api.Handler(options(store)), "GET", "/v1/viewers?video_id=10001", "")
	if got, want := res.body, `{"counts":[{"video_id":"10001","viewers":23}],"as_of":null}`+"\n"; got != want {
		t.Errorf("body = %s, want %s", got, want)
	}
	checkHeaders(t, res, map[string]string{"Cache-Control": "no-store"})
}
