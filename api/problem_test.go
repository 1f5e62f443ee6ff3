package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"headcount/api"
)

// badID is what a backend returns for an id it refuses.
type badID struct{ field, reason string }

func (e badID) Error() string              { return e.field + ": " + e.reason }
func (e badID) BadInput() (string, string) { return e.field, e.reason }

// videoFull is what a backend returns for a viewer who is one too many.
type videoFull struct{}

func (videoFull) Error() string { return "full" }
func (videoFull) VideoFull()    {}

// requests has one that reaches the backend for each route.
var requests = map[string][3]string{
	"play":    {"POST", "/v1/videos/10001/play", `{"viewer_id":"u1"}`},
	"leave":   {"POST", "/v1/videos/10001/leave", `{"viewer_id":"u1"}`},
	"viewers": {"GET", "/v1/videos/10001/viewers", ""},
	"plays":   {"POST", "/v1/plays", `{"plays":[{"video_id":"10001","viewer_id":"u1"},{"video_id":"10002","viewer_id":"u1"}]}`},
	"batch":   {"GET", "/v1/viewers?video_id=10001&video_id=10002", ""},
}

func TestBackendErrors(t *testing.T) {
	t.Parallel()
	const unavailable = "the count store is unavailable, try again"
	tests := map[string]struct {
		err        error
		status     int
		detail     string
		retryAfter string
	}{
		"bad input":         {badID{"video_id", "must not begin with count:"}, 400, "video_id: must not begin with count:", ""},
		"wrapped bad input": {fmt.Errorf("play: %w", badID{"viewer_id", "too long"}), 400, "viewer_id: too long", ""},
		"full":              {fmt.Errorf("play: %w", videoFull{}), 429, "the video has as many viewers as it may have", "150"},
		"failure":           {errors.New("HSET video:online:10001 u1: connection refused"), 503, unavailable, "1"},
		"deadline":          {fmt.Errorf("play: %w", context.DeadlineExceeded), 503, unavailable, "1"},
		"cancelled":         {context.Canceled, 503, unavailable, "1"},
	}
	for name, tt := range tests {
		for route, req := range requests {
			if route == "plays" && tt.status != http.StatusServiceUnavailable {
				continue // one play does not spoil the others of a batch
			}
			t.Run(name+"/"+route, func(t *testing.T) {
				t.Parallel()
				store := newStore()
				store.err = tt.err
				res := send(t, api.Handler(options(store)), req[0], req[1], req[2])
				checkProblem(t, res, tt.status, tt.detail)
				checkHeaders(t, res, map[string]string{"Retry-After": tt.retryAfter})
			})
		}
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	for route, req := range requests {
		store := newStore()
		store.hook = func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Errorf("%s: no deadline", route)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		o := options(store)
		o.Timeout = time.Millisecond
		res := send(t, api.Handler(o), req[0], req[1], req[2])
		if res.status != http.StatusServiceUnavailable {
			t.Errorf("%s: status = %d, want 503", route, res.status)
		}
	}
}

// The deadline is for Redis, not for a client whose body takes its time.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	for route, req := range requests {
		if req[0] != http.MethodPost {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			store := newStore()
			store.hook = func(ctx context.Context) error { return ctx.Err() }
			o := options(store)
			o.Timeout = time.Second
			body := iotest.OneByteReader(slowReader{strings.NewReader(req[2])})
			res := serve(api.Handler(o), httptest.NewRequestWithContext(t.Context(), req[0], req[1], body))
			if res.status != http.StatusOK && res.status != http.StatusNoContent {
				t.Errorf("%s: status = %d (%s), want what a quick body gets", route, res.status, res.body)
			}
		})
	}
}

// slowReader takes a second for each reading.
type slowReader struct{ io.Reader }

func (r slowReader) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	return r.Reader.Read(p)
}

func TestClientGoneWhileWriting(t *testing.T) {
	t.Parallel()
	for route, req := range requests {
		w := &brokenWriter{ResponseWriter: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), req[0], req[1], strings.NewReader(req[2]))
		api.Handler(options(newStore())).ServeHTTP(w, r)
		if w.headers > 1 { // net/http would log it
			t.Errorf("%s: %d headers written, want 1 at most", route, w.headers)
		}
	}
}

// brokenWriter is a connection that breaks when a body is written.
type brokenWriter struct {
	http.ResponseWriter
	headers int
}

func (w *brokenWriter) WriteHeader(int) { w.headers++ }

func (w *brokenWriter) Write([]byte) (int, error) {
	if w.headers == 0 {
		w.headers = 1
	}
	return 0, errors.New("broken pipe")
}

func TestNoTimeout(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.hook = func(ctx context.Context) error {
		if deadline, ok := ctx.Deadline(); ok {
			t.Errorf("deadline = %v, want none", deadline)
		}
		return nil
	}
	o := options(store)
	o.Timeout = 0
	if res := send(t, api.Handler(o), "GET", "/v1/videos/10001/viewers", ""); res.status != http.StatusOK {
		t.Errorf("status = %d, want 200", res.status)
	}
}

func TestOtherMethods(t *testing.T) {
	t.Parallel()
	store := newStore()
	h := api.Handler(options(store))
	for path, allow := range map[string]string{
		"/v1/videos/10001/play":    "POST",
		"/v1/videos/10001/leave":   "POST",
		"/v1/videos/10001/viewers": "GET, HEAD",
		"/v1/videos/%2F/viewers":   "GET, HEAD",
		"/v1/plays":                "GET, HEAD, POST",
		"/v1/viewers?video_id=1":   "GET, HEAD",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if strings.Contains(allow, method) {
				continue
			}
			t.Run(method+" "+path, func(t *testing.T) {
				res := send(t, h, method, path, `{"viewer_id":"u1"}`)
				checkProblem(t, res, http.StatusMethodNotAllowed, "allowed here: "+allow)
				checkHeaders(t, res, map[string]string{"Allow": allow})
			})
		}
	}
	if got := store.Calls(); len(got) != 0 {
		t.Errorf("calls = %v, want none", got)
	}
}

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		contentType, body string
		status            int
		detail            string
	}{
		"not JSON":  {"text/plain", "viewer_id=u1", 400, "body: not JSON at byte 0"},
		"too large": {"application/json", strings.Repeat(" ", 4097), 413, "body: larger than 4096 bytes"},
		"form":      {"application/x-www-form-urlencoded", "viewer_id=u1", 415, "Content-Type: must be application/json or text/plain"},
	}
	for name, tt := range tests {
		for _, route := range []string{"play", "leave"} {
			t.Run(name+"/"+route, func(t *testing.T) {
				t.Parallel()
				store := newStore()
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/videos/10001/"+route, strings.NewReader(tt.body))
				r.Header.Set("Content-Type", tt.contentType)
				checkProblem(t, serve(api.Handler(options(store)), r), tt.status, tt.detail)
				if got := store.Calls(); len(got) != 0 {
					t.Errorf("calls = %v, want none", got)
				}
			})
		}
	}
}

func TestPlayTakesNoTime(t *testing.T) {
	t.Parallel()
	res := send(t, api.Handler(options(newStore())), "POST", "/v1/videos/10001/play", `{"viewer_id":"u1","recorded_at":1}`)
	checkProblem(t, res, http.StatusBadRequest, "body: unknown field near byte 31; known: viewer_id, token, resumed")
}
