package browsertest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headcount/internal/programtest"
)

// site is a web site with pages of the test's own, in front of the server that
// counts. It notes the requests to the API, also those of pages that are gone,
// and can stand in their way.
type site struct {
	*httptest.Server
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	mux      *http.ServeMux                                // what the site has besides the API and the scripts
	hurdle   func(http.ResponseWriter, *http.Request) bool // true: answered
	requests []request
}

// request is one that reached the API.
type request struct {
	Method, Path, Query, ContentType, Body string
}

func (l *lab) site(t *testing.T) *site {
	t.Helper()
	backend, err := url.Parse(l.backend)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	s := &site{mux: http.NewServeMux()}
	s.handle("/sound", serveSound)
	s.proxy = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(backend) },
		// The page has gone, and does not want the answer.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		transport.CloseIdleConnections()
		if t.Failed() {
			t.Logf("requests: %+v", s.all())
		}
	})
	return s
}

// handle puts something on the site, as ServeMux does.
func (s *site) handle(pattern string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mux.HandleFunc(pattern, h)
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	own, pattern := s.mux.Handler(r)
	hurdle := s.hurdle
	s.mu.Unlock()
	if pattern != "" {
		own.ServeHTTP(w, r)
		return
	}
	s.note(r)
	if hurdle == nil || !strings.HasPrefix(r.URL.Path, "/v1/") || !hurdle(w, r) {
		s.proxy.ServeHTTP(w, r)
	}
}

func (s *site) note(r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is cut off is no JSON, which the server says
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)})
}

// block puts something in the way of the API; nil takes it away.
func (s *site) block(hurdle func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurdle = hurdle
}

// page puts a page on the site, and returns its URL.
func (s *site) page(path, html string, header ...string) string {
	s.handle(strings.TrimSuffix(path, "/")+"/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		_, _ = io.WriteString(w, "<!doctype html><html lang=en><meta charset=utf-8><title>A page</title>"+html)
	})
	return s.URL + strings.TrimSuffix(path, "/") + "/"
}

// script is the first of the two lines.
func (s *site) script() string { return `<script src="` + s.URL + `/headcount.js"></script>` }

// playing is a video of a minute that plays and is counted.
func playing(videoID, attributes string) string {
	return fmt.Sprintf(`<video id="v%s" data-headcount="%s" src="/sound" autoplay %s></video>`, videoID, videoID, attributes)
}

// video returns an id that no other test uses.
func (l *lab) video() string { return fmt.Sprint(20000 + l.videos.Add(1)) }

func (s *site) all() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
}

// sent returns the requests of one kind for one video: "play" or "leave".
func (s *site) sent(videoID, what string) []request {
	var found []request
	for _, r := range s.all() {
		if r.Path == "/v1/videos/"+videoID+"/"+what && r.Method == http.MethodPost {
			found = append(found, r)
		}
	}
	return found
}

// wait waits for the n-th request of one kind for one video, counted from 1.
func (s *site) wait(t *testing.T, videoID, what string, n int) request {
	t.Helper()
	programtest.Eventually(t, fmt.Sprintf("%s number %d of video %s", what, n, videoID), func() bool {
		return len(s.sent(videoID, what)) >= n
	})
	return s.sent(videoID, what)[n-1]
}

// more waits for n more plays of a video, which tell how time passes for pages.
func (s *site) more(t *testing.T, videoID string, n int) {
	t.Helper()
	s.wait(t, videoID, "play", len(s.sent(videoID, "play"))+n)
}

// wantSent checks how many requests of one kind there were so far.
func (s *site) wantSent(t *testing.T, videoID, what string, want int) {
	t.Helper()
	if got := len(s.sent(videoID, what)); got != want {
		t.Errorf("%d requests to %s of video %s, want %d", got, what, videoID, want)
	}
}

func (l *lab) viewers(t *testing.T, videoID string) int {
	t.Helper()
	var got struct{ Viewers int }
	body := programtest.Get(t, l.backend+"/v1/videos/"+videoID+"/viewers").OK(t)
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	return got.Viewers
}

// wantViewers waits until the server counts so many.
func (l *lab) wantViewers(t *testing.T, videoID string, want int) {
	t.Helper()
	programtest.Eventually(t, fmt.Sprintf("video %s has %d viewers", videoID, want), func() bool {
		return l.viewers(t, videoID) == want
	})
}

// serveSound serves silence, a minute of it or as many seconds as are asked for.
// A browser plays it as a video whose picture is black.
func serveSound(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
	if err != nil {
		seconds = 60
	}
	w.Header().Set("Content-Type", "audio/wav")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(silence(seconds)))
}

// silence is a WAV file of 8,000 samples a second, a byte each.
func silence(seconds int) []byte {
	const rate, headerSize = 8000, 36
	size := uint32(seconds * rate)
	var out bytes.Buffer
	out.WriteString("RIFF")
	for _, v := range []any{headerSize + size, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(rate), uint32(rate), uint16(1), uint16(8), []byte("data"), size} {
		_ = binary.Write(&out, binary.LittleEndian, v) // to memory
	}
	out.Write(bytes.Repeat([]byte{128}, int(size)))
	return out.Bytes()
}
