package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"headcount/bench/internal/proxy"
)

// echo is a server that sends back what it gets. It ends with the test.
func echo(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *proxy.Proxy) (net.Conn, *bufio.Scanner) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewScanner(conn)
}

func start(t *testing.T, roundTrip time.Duration) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(t.Context(), echo(t), roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestManyInFlightInOrder(t *testing.T) {
	t.Parallel()
	const roundTrip, messages = 100 * time.Millisecond, 50
	conn, lines := dial(t, start(t, roundTrip))
	began := time.Now()
	go func() {
		apart := time.NewTicker(4 * time.Millisecond) // or several share a chunk
		defer apart.Stop()
		for i := range messages {
			<-apart.C
			_, _ = fmt.Fprintf(conn, "%d\n", i)
		}
	}()
	for i := range messages {
		if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
			t.Fatalf("message %d: got %q, %v", i, lines.Text(), lines.Err())
		}
		if took := time.Since(began); i == 0 && took < roundTrip {
			t.Errorf("the first answer came after %v, want at least %v", took, roundTrip)
		}
	}
	if took := time.Since(began); took > roundTrip*messages/4 {
		t.Errorf("%d messages in flight took %v: as if each waited for the one before", messages, took)
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	p := start(t, 0)
	conn, lines := dial(t, p)
	for range 3 {
		if _, err := io.WriteString(conn, "ping\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	if got := p.Turns(); got != 3 {
		t.Errorf("Turns() = %d, want 3", got)
	}
}

func TestServersEndReachesClient(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = io.WriteString(conn, "bye\n")
			_ = conn.Close()
		}
		_ = l.Close()
	}()
	p, err := proxy.New(t.Context(), l.Addr().String(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	conn, _ := dial(t, p)
	if got, err := io.ReadAll(conn); string(got) != "bye\n" || err != nil {
		t.Errorf("got %q, %v, want the last words and the end", got, err)
	}
}
