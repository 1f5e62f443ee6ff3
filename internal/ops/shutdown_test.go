package ops

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"
)

// What is still under way after the drain deadline is cut off.
func TestShutdownCutsOff(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	server := newServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}), zap.NewNop())
	listeners, err := listen(t.Context(), []Server{{Name: "public", Addr: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listeners[0]) }()

	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-entered

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // less than DrainTimeout
	defer cancel()
	if err := shutdown(ctx, server); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown() = %v, want that the deadline passed", err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve() = %v, want %v", err, http.ErrServerClosed)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes, want a closed connection", n)
	}
}

func TestServerIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer(http.NotFoundHandler(), zap.NewNop())
	for name, d := range map[string]time.Duration{
		"ReadHeaderTimeout": s.ReadHeaderTimeout,
		"ReadTimeout":       s.ReadTimeout,
		"WriteTimeout":      s.WriteTimeout,
		"IdleTimeout":       s.IdleTimeout,
	} {
		if d <= 0 {
			t.Errorf("%s = %s, want a limit", name, d)
		}
	}
	if s.MaxHeaderBytes <= 0 || s.MaxHeaderBytes > 256<<10 {
		t.Errorf("MaxHeaderBytes = %d, want a small limit", s.MaxHeaderBytes)
	}
}
