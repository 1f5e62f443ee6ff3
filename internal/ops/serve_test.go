package ops_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"headcount/internal/ops"
)

const limit = 10 * time.Second

// client keeps no connection: an idle one would outlive the test.
var client = &http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}

// get returns the status code that addr answers with.
func get(ctx context.Context, addr net.Addr) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr.String(), nil)
	if err != nil {
		return 0, err
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// serving is a call of Serve with a public listener, that answers 200 once it is
// released, and an admin listener that tells the readiness.
type serving struct {
	public, admin net.Addr
	entered       chan struct{} // gets one for each public request under way
	release       chan struct{} // closed to let them finish
	stop          context.CancelFunc
	ended         chan error
	logs          *observer.ObservedLogs
}

func serve(t *testing.T, drain time.Duration) *serving {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	s := &serving{entered: make(chan struct{}), release: make(chan struct{}), stop: stop, ended: make(chan error, 1)}
	core, logs := observer.New(zapcore.InfoLevel)
	s.logs = logs
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		s.entered <- struct{}{}
		<-s.release
	})
	ready := ops.NewReadiness(nil)
	addrs := make(chan net.Addr, 2)
	listening := func(a net.Addr) { addrs <- a }
	go func() {
		s.ended <- ops.Serve(ctx, zap.New(core), ready,
			ops.Server{Name: "public", Addr: "127.0.0.1:0", Handler: slow, Listening: listening, Drain: drain},
			ops.Server{Name: "admin", Addr: "127.0.0.1:0", Handler: ready, Listening: listening},
		)
	}()
	s.public, s.admin = <-addrs, <-addrs
	return s
}

func TestServeDrains(t *testing.T) {
	t.Parallel()
	s := serve(t, 0)
	if code, err := get(t.Context(), s.admin); code != http.StatusOK || err != nil {
		t.Errorf("readiness while serving = %d, %v; want 200", code, err)
	}
	type answer struct {
		code int
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		code, err := get(t.Context(), s.public)
		answers <- answer{code, err}
	}()
	<-s.entered

	s.stop()
	refuses(t, s.public)
	if code, err := get(t.Context(), s.admin); code != http.StatusServiceUnavailable || err != nil {
		t.Errorf("readiness while draining = %d, %v; want 503", code, err)
	}
	select {
	case err := <-s.ended:
		t.Fatalf("Serve() = %v with a request under way", err)
	default:
	}
	close(s.release)
	if got := <-answers; got.code != http.StatusOK || got.err != nil {
		t.Errorf("the request under way was answered %d, %v; want 200", got.code, got.err)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Serve() = %v, want nil", err)
	}
	refuses(t, s.admin)
}

// A server with Drain still answers when it is not ready any more, and ends its connections.
func TestServeDrainsSlowly(t *testing.T) {
	t.Parallel()
	const drain = 5 * time.Second // for a busy machine, in which to be answered
	s := serve(t, drain)
	close(s.release)
	began := time.Now()
	s.stop()
	for code := http.StatusOK; code != http.StatusServiceUnavailable; {
		var err error
		if code, err = get(t.Context(), s.admin); err != nil {
			t.Fatal(err)
		}
	}
	answered := make(chan *http.Response)
	go func() {
		defer close(answered)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.public.String(), nil)
		if err != nil {
			return
		}
		if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
			_ = res.Body.Close()
			answered <- res
		}
	}()
	<-s.entered
	if res := <-answered; res == nil || res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("while draining, answered %v, want 200 and the end of the connection", res)
	}
	if err := <-s.ended; err != nil || time.Since(began) < drain {
		t.Errorf("Serve() = %v after %v, want nil after %v", err, time.Since(began), drain)
	}
	refuses(t, s.public)
}

// refuses waits until addr takes no connection.
func refuses(t *testing.T, addr net.Addr) {
	t.Helper()
	var d net.Dialer
	for began := time.Now(); time.Since(began) < limit; {
		conn, err := d.DialContext(t.Context(), "tcp", addr.String())
		if err != nil {
			return
		}
		_ = conn.Close()
	}
	t.Fatalf("%s still takes connections", addr)
}

func TestServeLogsItsListeners(t *testing.T) {
	t.Parallel()
	s := serve(t, 0)
	for i, want := range []map[string]any{
		{"listener": "public", "addr": s.public.String()},
		{"listener": "admin", "addr": s.admin.String()},
	} {
		got := s.logs.FilterMessage("listening").All()[i].ContextMap()
		for field, value := range want {
			if got[field] != value {
				t.Errorf("line %d: %s = %v, want %v", i, field, got[field], value)
			}
		}
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("Serve() = %v, want nil", err)
	}
}

func TestServePortInUse(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	free, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()

	err = ops.Serve(t.Context(), zap.NewNop(), ops.NewReadiness(nil),
		ops.Server{Name: "public", Addr: free.Addr().String(), Handler: http.NotFoundHandler()},
		ops.Server{Name: "admin", Addr: taken.Addr().String(), Handler: http.NotFoundHandler()},
	)
	if err == nil {
		t.Fatal("Serve() = nil, want an error")
	}
	for _, want := range []string{"admin listener", taken.Addr().String(), "address already in use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Serve() = %q, want it to say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("Serve() = %q, want one line", err)
	}
	again, err := lc.Listen(t.Context(), "tcp", free.Addr().String())
	if err != nil {
		t.Fatalf("the other listener was left open: %v", err)
	}
	_ = again.Close()
}
