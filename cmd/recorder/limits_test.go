package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// through posts by way of a proxy on the loopback that says for whom.
func (s *service) through(t *testing.T, client *http.Client, path, body string, headers ...string) (code int, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode, res.Header
}

// newClient keeps connections, for many requests, until the test ends.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16, MaxConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: programtest.Limit}
}

const trustLoopback = "HEADCOUNT_RECORDER_TRUSTED_PROXIES=127.0.0.0/8,::1"

func viewer(i int) string { return fmt.Sprintf(`{"viewer_id":"viewer-%d"}`, i) }

func (s *service) wantInHash(t *testing.T, video string, least, most int64) {
	t.Helper()
	got, err := s.redis.Client().HLen(t.Context(), s.keys.Online(video)).Result()
	if err != nil || got < least || got > most {
		t.Errorf("%d viewers in the hash (%v), want %d to %d", got, err, least, most)
	}
}

// A campus behind one address is as many viewers as it has.
func TestViewersBehindOneAddress(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_REDIS_TIMEOUT=10s", trustLoopback)
	client := newClient(t)
	for i := range 30 {
		if code, _ := s.through(t, client, "/v1/videos/10001/play", viewer(i), "X-Forwarded-For: 203.0.113.9"); code != http.StatusOK {
			t.Errorf("play = %d, want 200", code)
		}
	}
	s.wantInHash(t, "10001", 30, 30)
}

func TestBurstFromOneAddress(t *testing.T) {
	t.Parallel()
	const ids, burst, perSecond = 1000, 100, 5
	s := start(t, redistest.Shared(t), trustLoopback, "HEADCOUNT_REDIS_TIMEOUT=10s",
		fmt.Sprintf("HEADCOUNT_RECORDER_RATE_BURST=%d", burst), fmt.Sprintf("HEADCOUNT_RECORDER_RATE_LIMIT=%d", perSecond))
	client := newClient(t)
	began := time.Now()
	var recorded, refused atomic.Int64
	var flood sync.WaitGroup
	for part := range 10 {
		flood.Go(func() {
			for i := range ids / 10 {
				code, header := s.through(t, client, "/v1/videos/10001/play", viewer(part*ids/10+i), "Forwarded: for=203.0.113.9")
				switch wait, err := strconv.Atoi(header.Get("Retry-After")); {
				case code == http.StatusOK:
					recorded.Add(1)
				case code == http.StatusTooManyRequests && err == nil && wait == 1:
					refused.Add(1)
				default:
					t.Errorf("play = %d, Retry-After %d (%v), want 200 or 429 and 1", code, wait, err)
				}
			}
		})
	}
	flood.Wait()
	most := burst + int64(time.Since(began).Seconds()*perSecond) + 1
	if got := recorded.Load(); got < burst || got > most || got+refused.Load() != ids {
		t.Errorf("%d plays recorded and %d refused, want %d to %d recorded and the others refused", got, refused.Load(), burst, most)
	}
	s.wantInHash(t, "10001", recorded.Load(), recorded.Load())

	for name, headers := range map[string][]string{
		"another address":  {"X-Forwarded-For: 203.0.113.9, 203.0.113.10"},
		"another /64":      {`Forwarded: for="[2001:db8:0:1::1]:4711"`},
		"the proxy itself": nil,
	} {
		if code, _ := s.through(t, client, "/v1/videos/10002/play", viewer(1), headers...); code != http.StatusOK {
			t.Errorf("play of %s = %d, want 200", name, code)
		}
	}
	programtest.Get(t, s.video("10001", "viewers")).OK(t) // lookups are not limited
	if got := programtest.Metric(t, s.admin, `headcount_refused_total{reason="rate"}`); got != float64(refused.Load()) {
		t.Errorf("refused in the metrics = %v, want %d", got, refused.Load())
	}
	for what, text := range map[string]string{"log": s.Output(), "metrics": programtest.Get(t, s.admin+"/metrics").OK(t)} {
		if strings.Contains(text, "203.0.113") || strings.Contains(text, "viewer-") {
			t.Errorf("the %s holds an address or a viewer", what)
		}
	}
}

// Whoever is no trusted proxy claims in vain to be another.
func TestClaimedAddressIsIgnored(t *testing.T) {
	t.Parallel()
	const burst = 20
	s := start(t, redistest.Shared(t), "HEADCOUNT_REDIS_TIMEOUT=10s",
		fmt.Sprintf("HEADCOUNT_RECORDER_RATE_BURST=%d", burst), "HEADCOUNT_RECORDER_RATE_LIMIT=1",
		"HEADCOUNT_RECORDER_TRUSTED_PROXIES=10.0.0.0/8")
	client := newClient(t)
	began := time.Now()
	recorded := 0
	for i := range 10 * burst {
		claimed := fmt.Sprintf("198.51.100.%d", i)
		code, _ := s.through(t, client, "/v1/videos/10001/play", viewer(i), "X-Forwarded-For: "+claimed, "Forwarded: for="+claimed)
		if code == http.StatusOK {
			recorded++
		}
	}
	if most := burst + int(time.Since(began).Seconds()) + 1; recorded < burst || recorded > most {
		t.Errorf("%d plays recorded, want %d to %d whatever was claimed", recorded, burst, most)
	}
}

func TestBatchesCountAsTheirPlays(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_RECORDER_RATE_BURST=10", "HEADCOUNT_RECORDER_RATE_LIMIT=1", "HEADCOUNT_REDIS_TIMEOUT=5s")
	batch := func(n int) string {
		var plays []string
		for i := range n {
			plays = append(plays, fmt.Sprintf(`{"video_id":"10001","viewer_id":"%d-%d"}`, n, i))
		}
		return `{"plays":[` + strings.Join(plays, ",") + `]}`
	}
	if got := programtest.Post(t, s.base+"/v1/plays", batch(11)); got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body, "more than the 10") {
		t.Errorf("a batch larger than the burst = %v, want 429 that says so", got)
	}
	programtest.Post(t, s.base+"/v1/plays", batch(9)).OK(t) // the refused one has cost one
	if got := programtest.Post(t, s.base+"/v1/plays", batch(8)); got.Code != http.StatusTooManyRequests {
		t.Errorf("a batch after it = %v, want 429", got)
	}
	s.wantInHash(t, "10001", 9, 9)
}

func TestFullVideo(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_RECORDER_MAX_VIEWERS=2", "HEADCOUNT_RECORDER_BEAT_AFTER=33s")
	s.play(t, "10001", "u1")
	s.play(t, "10001", "u2")
	code, header := s.through(t, newClient(t), "/v1/videos/10001/play", viewer(3))
	if got := header.Get("Retry-After"); code != http.StatusTooManyRequests || got != "33" {
		t.Errorf("play of a third viewer = %d, Retry-After %q, want 429 and beat_after, 33", code, got)
	}
	s.play(t, "10001", "u1")
	body := programtest.Post(t, s.base+"/v1/plays", `{"plays":[{"video_id":"10001","viewer_id":"u3"},{"video_id":"10001","viewer_id":"u2"}]}`).OK(t)
	if want := `"errors":[{"index":0,"detail":"the video has as many viewers as it may have"}]}`; !strings.HasSuffix(body, want) {
		t.Errorf("batch = %s, want it to end in %s", body, want)
	}
	s.wantInHash(t, "10001", 2, 2)
	if got := programtest.Metric(t, s.admin, `headcount_refused_total{reason="viewers"}`); got != 2 {
		t.Errorf("refused in the metrics = %v, want 2", got)
	}
}

func TestConnectionsBeyondTheCap(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_RECORDER_MAX_CONNECTIONS=2")
	var d net.Dialer
	var silent []net.Conn
	for range 2 {
		conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		silent = append(silent, conn)
	}
	began := time.Now()
	if _, _, err := ask(t, s.base, "GET", "/"); err == nil || time.Since(began) > programtest.Limit/2 {
		t.Errorf("a connection too many: %v after %v, want it closed at once", err, time.Since(began))
	}
	if got := programtest.Metric(t, s.admin, `headcount_connections_closed_total{connection="new"}`); got != 1 {
		t.Errorf("closed in the metrics = %v, want 1", got)
	}
	for _, conn := range silent {
		_ = conn.Close()
	}
	programtest.Eventually(t, "there is room again", func() bool {
		code, _, err := ask(t, s.base, "GET", "/v1/videos/10001/viewers")
		return err == nil && code == http.StatusOK
	})
}

// ask sends a request as it is, over a connection of its own, and returns the
// answer's status and header.
func ask(t *testing.T, base, method, target string) (code int, header http.Header, err error) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(programtest.Limit)); err != nil {
		return 0, nil, err
	}
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method, target); err != nil {
		return 0, nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	return res.StatusCode, res.Header, res.Body.Close()
}

// Nothing is answered without them, by the handlers or past them.
func TestEveryAnswerHasSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t))
	for _, tt := range []struct {
		base, method, target string
		code                 int
	}{
		{s.base, "GET", "/v1/videos/10001/viewers", 200},
		{s.base, "GET", "/", 404},
		{s.base, "GET", "//v1", 404},
		{s.base, "DELETE", "/v1/plays", 405},
		{s.base, "OPTIONS", "/v1/plays", 405},
		{s.base, "OPTIONS", "*", 404},
		{s.base, "POST", "/v1/plays", 400},
		{s.admin, "GET", "/healthz", 200},
		{s.admin, "GET", "/nothing", 404},
		{s.admin, "POST", "/healthz", 405},
	} {
		code, header, err := ask(t, tt.base, tt.method, tt.target)
		if err != nil {
			t.Fatalf("%s %s: %v", tt.method, tt.target, err)
		}
		if code != tt.code {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.target, code, tt.code)
		}
		for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy", "Cross-Origin-Resource-Policy"} {
			if header.Get(name) == "" {
				t.Errorf("%s %s: no %s", tt.method, tt.target, name)
			}
		}
	}
}
