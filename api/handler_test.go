package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headcount/api"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

type call struct {
	Op, VideoID, ViewerID string
	RecordedAt            int64
}

// fakeStore is a Recorder and a Lookup that notes what it was asked.
type fakeStore struct {
	recordedAt int64
	viewers    int64
	asOf       time.Time
	err        error
	playErrs   map[int]error // of single plays of a batch, by index
	hook       func(ctx context.Context) error

	mu    sync.Mutex
	calls []call
}

func (s *fakeStore) note(ctx context.Context, c call) error {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	if s.hook != nil {
		return s.hook(ctx)
	}
	return s.err
}

func (s *fakeStore) Play(ctx context.Context, videoID, viewerID string) (int64, error) {
	return s.recordedAt, s.note(ctx, call{"play", videoID, viewerID, 0})
}

func (s *fakeStore) Resume(ctx context.Context, videoID, viewerID string) (int64, error) {
	return s.recordedAt, s.note(ctx, call{"resume", videoID, viewerID, 0})
}

// PlayAll notes one call, with all ids.
func (s *fakeStore) PlayAll(ctx context.Context, videoIDs, viewerIDs []string) (int64, []error) {
	all := s.note(ctx, call{"play all", strings.Join(videoIDs, ","), strings.Join(viewerIDs, ","), 0})
	errs := make([]error, len(videoIDs))
	recordedAt := int64(0)
	for i := range errs {
		if errs[i] = all; s.playErrs[i] != nil {
			errs[i] = s.playErrs[i]
		}
		if errs[i] == nil {
			recordedAt = s.recordedAt
		}
	}
	return recordedAt, errs
}

func (s *fakeStore) Leave(ctx context.Context, videoID, viewerID string, recordedAt int64) error {
	return s.note(ctx, call{"leave", videoID, viewerID, recordedAt})
}

func (s *fakeStore) Viewers(ctx context.Context, videoID string) (int64, time.Time, error) {
	return s.viewers, s.asOf, s.note(ctx, call{"viewers", videoID, "", 0})
}

// Batch notes one call, with all ids. Each video has one viewer more than the
// one before it.
func (s *fakeStore) Batch(ctx context.Context, videoIDs []string) ([]int64, time.Time, error) {
	viewers := make([]int64, len(videoIDs))
	for i := range viewers {
		viewers[i] = s.viewers + int64(i)
	}
	return viewers, s.asOf, s.note(ctx, call{"batch", strings.Join(videoIDs, ","), "", 0})
}

func (s *fakeStore) Calls() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func newStore() *fakeStore {
	asOf := time.Date(2026, 11, 30, 15, 0, 0, 987654321, time.FixedZone("CET", 3600))
	return &fakeStore{recordedAt: 1700000000, viewers: 23, asOf: asOf}
}

func options(s *fakeStore) api.Options {
	return api.Options{
		Recorder:    s,
		Lookup:      s,
		BeatAfter:   func() time.Duration { return 150 * time.Second },
		CORSOrigins: []string{"*"},
		CacheFor:    3 * time.Second,
		Timeout:     time.Minute,
	}
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// send has the handler answer one request whose body is JSON.
func send(t *testing.T, h http.Handler, method, path, body string) answer {
	t.Helper()
	return serve(h, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
}

func serve(h http.Handler, r *http.Request) answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// readAnswer reads and closes a response.
func readAnswer(t *testing.T, res *http.Response) answer {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// problemJSON is what a problem answer looks like to the byte.
func problemJSON(status int, detail string) string {
	return fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"detail":%q}`+"\n", http.StatusText(status), status, detail)
}

func checkProblem(t *testing.T, res answer, status int, detail string) {
	t.Helper()
	if res.status != status {
		t.Errorf("status = %d, want %d", res.status, status)
	}
	if diff := cmp.Diff(problemJSON(status, detail), res.body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	checkHeaders(t, res, map[string]string{
		"Content-Type":  "application/problem+json",
		"Cache-Control": "no-store",
		"Location":      "",
	})
	checkHeaders(t, res, safeHeaders)
}

// safeHeaders are on every answer.
var safeHeaders = map[string]string{
	"X-Content-Type-Options":       "nosniff",
	"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "cross-origin",
}

func checkHeaders(t *testing.T, res answer, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := res.header.Get(name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const play, leave = "/v1/videos/10001/play", "/v1/videos/10001/leave"
	tests := map[string]struct {
		method, path, body string
		status             int
		contentType        string
		cacheControl       string
		answer             string
		call               call
	}{
		"play": {
			"POST", play, `{"viewer_id":"u1"}`, 200, "application/json", "no-store",
			`{"recorded_at":1700000000,"beat_after":150}` + "\n", call{"play", "10001", "u1", 0},
		},
		"resumed play": {
			"POST", play, `{"viewer_id":"u1","resumed":true}`, 200, "application/json", "no-store",
			`{"recorded_at":1700000000,"beat_after":150}` + "\n", call{"resume", "10001", "u1", 0},
		},
		"leave": {
			"POST", leave, `{"viewer_id":"u1","recorded_at":1700000000}`, 204, "", "no-store",
			"", call{"leave", "10001", "u1", 1700000000},
		},
		"leave in any case": {
			"POST", leave, `{"viewer_id":"u1"}`, 204, "", "no-store",
			"", call{"leave", "10001", "u1", 0},
		},
		"viewers": {
			"GET", "/v1/videos/10001/viewers", "", 200, "application/json", "public, max-age=3",
			`{"video_id":"10001","viewers":23,"as_of":"2026-11-30T14:00:00Z"}` + "\n", call{"viewers", "10001", "", 0},
		},
		"ids are not HTML-escaped": {
			"GET", "/v1/videos/%3Ca%26b%3E/viewers", "", 200, "application/json", "public, max-age=3",
			`{"video_id":"<a&b>","viewers":23,"as_of":"2026-11-30T14:00:00Z"}` + "\n", call{"viewers", "<a&b>", "", 0},
		},
		"plays": {
			"POST", "/v1/plays", `{"plays":[{"video_id":"10001","viewer_id":"u1"},{"viewer_id":"u2","video_id":"10002"}]}`, 200, "application/json", "no-store",
			`{"recorded":2,"recorded_at":1700000000,"beat_after":150,"errors":[]}` + "\n", call{"play all", "10001,10002", "u1,u2", 0},
		},
		"no plays": {
			"POST", "/v1/plays", `{"plays":[]}`, 200, "application/json", "no-store",
			`{"recorded":0,"recorded_at":0,"beat_after":150,"errors":[]}` + "\n", call{"play all", "", "", 0},
		},
		"viewers of several": {
			"GET", "/v1/viewers?video_id=b&video_id=a&video_id=b", "", 200, "application/json", "public, max-age=3",
			`{"counts":[{"video_id":"b","viewers":23},{"video_id":"a","viewers":24},{"video_id":"b","viewers":25}],"as_of":"2026-11-30T14:00:00Z"}` + "\n",
			call{"batch", "b,a,b", "", 0},
		},
		"ids in a query": {
			"GET", "/v1/viewers?video_id=a%2Bb%26c%3Cd%3E&video_id=e+f&video_id=%2F&video_id=%E6%97%A5", "", 200, "application/json", "public, max-age=3",
			`{"counts":[{"video_id":"a+b&c<d>","viewers":23},{"video_id":"e f","viewers":24},{"video_id":"/","viewers":25},{"video_id":"日","viewers":26}],"as_of":"2026-11-30T14:00:00Z"}` + "\n",
			call{"batch", "a+b&c<d>,e f,/,日", "", 0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore()
			res := send(t, api.Handler(options(store)), tt.method, tt.path, tt.body)
			if res.status != tt.status {
				t.Errorf("status = %d, want %d", res.status, tt.status)
			}
			if diff := cmp.Diff(tt.answer, res.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]call{tt.call}, store.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			checkHeaders(t, res, map[string]string{"Content-Type": tt.contentType, "Cache-Control": tt.cacheControl})
			checkHeaders(t, res, safeHeaders)
		})
	}
}

func TestViewersUnknown(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.viewers, store.asOf = 0, time.Time{}
	res := send(t, api.Handler(options(store)), "GET", "/v1/videos/10001/viewers", "")
	want := `{"video_id":"10001","viewers":0,"as_of":null}` + "\n"
	if got := res.body; got != want {
		t.Errorf("body = %s, want %s", got, want)
	}
	checkHeaders(t, res, map[string]string{"Cache-Control": "no-store"})
}

func TestCacheFor(t *testing.T) {
	t.Parallel()
	tests := map[time.Duration]string{
		0:                       "no-store",
		999 * time.Millisecond:  "no-store",
		1500 * time.Millisecond: "public, max-age=1",
		time.Minute:             "public, max-age=60",
	}
	for cacheFor, want := range tests {
		o := options(newStore())
		o.CacheFor = cacheFor
		res := send(t, api.Handler(o), "GET", "/v1/videos/10001/viewers", "")
		if got := res.header.Get("Cache-Control"); got != want {
			t.Errorf("CacheFor %v: Cache-Control = %q, want %q", cacheFor, got, want)
		}
	}
}

func TestBeatAfterIsAskedEachTime(t *testing.T) {
	t.Parallel()
	var beat time.Duration
	o := options(newStore())
	o.BeatAfter = func() time.Duration { return beat }
	h := api.Handler(o)
	for _, tt := range []struct {
		beat time.Duration
		want int
	}{{90 * time.Second, 90}, {2900 * time.Millisecond, 2}, {300 * time.Millisecond, 1}, {0, 1}} {
		beat = tt.beat
		got := send(t, h, "POST", "/v1/videos/10001/play", `{"viewer_id":"u1"}`).body
		if want := fmt.Sprintf("{\"recorded_at\":1700000000,\"beat_after\":%d}\n", tt.want); got != want {
			t.Errorf("BeatAfter %v: body = %s, want %s", tt.beat, got, want)
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(api.Handler(options(newStore())))
	defer srv.Close()
	for _, tt := range []struct {
		path   string
		status int
		body   string // whose length is told
	}{
		{"/v1/videos/10001/viewers", 200, `{"video_id":"10001","viewers":23,"as_of":"2026-11-30T14:00:00Z"}` + "\n"},
		{"/v1/viewers?video_id=10001", 200, `{"counts":[{"video_id":"10001","viewers":23}],"as_of":"2026-11-30T14:00:00Z"}` + "\n"},
		{"/v1/nothing", 404, problemJSON(404, "no such path")},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, srv.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got := readAnswer(t, res)
		if got.status != tt.status || got.body != "" {
			t.Errorf("HEAD %s: got %d %q, want %d without a body", tt.path, got.status, got.body, tt.status)
		}
		checkHeaders(t, got, map[string]string{"Content-Length": strconv.Itoa(len(tt.body))})
	}
}

func BenchmarkPlay(b *testing.B) {
	o := options(newStore())
	o.Recorder = silentRecorder{}
	h := api.Handler(o)
	body := strings.NewReader("")
	r := httptest.NewRequestWithContext(b.Context(), "POST", "/v1/videos/10001/play", body)
	r.Header.Set("Content-Type", "application/json")
	w := silentWriter{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(`{"viewer_id":"u1"}`)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

type silentRecorder struct{ api.Recorder }

func (silentRecorder) Play(context.Context, string, string) (int64, error) { return 1700000000, nil }

type silentWriter struct{ header http.Header }

func (w silentWriter) Header() http.Header       { return w.header }
func (silentWriter) Write(p []byte) (int, error) { return len(p), nil }
func (silentWriter) WriteHeader(int)             {}
