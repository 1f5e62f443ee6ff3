package ops

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// pipes is a listener whose connections are in memory, so that the time of a
// bubble goes by while a client is slow.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// inBubble runs test in a bubble, with a function that starts a server of ours
// and returns a connection to it.
func inBubble(t *testing.T, test func(t *testing.T, connect func(http.HandlerFunc) net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, func(h http.HandlerFunc) net.Conn {
			server, l := newServer(h, zap.NewNop()), pipes{make(chan net.Conn), make(chan struct{})}
			served := make(chan error, 1)
			go func() { served <- server.Serve(l) }()
			client, conn := net.Pipe()
			l.conns <- conn
			t.Cleanup(func() {
				_ = client.Close()
				_ = server.Close()
				if err := <-served; !errors.Is(err, http.ErrServerClosed) {
					t.Errorf("Serve() = %v, want %v", err, http.ErrServerClosed)
				}
				<-time.After(time.Second) // for which the server lingers after some errors
			})
			return client
		})
	})
}

func nothing(http.ResponseWriter, *http.Request) {}

// wantEnd reads until the server ends the connection, which must be after d.
func wantEnd(t *testing.T, conn io.Reader, began time.Time, d time.Duration) {
	t.Helper()
	_, err := io.Copy(io.Discard, conn)
	if took := time.Since(began); err != nil || took < d || took > d+time.Second {
		t.Errorf("the connection was ended after %v (%v), want after %v", took, err, d)
	}
}

// drip sends a byte each second until the connection is ended.
func drip(conn net.Conn) {
	for {
		if _, err := conn.Write([]byte("x")); err != nil {
			return
		}
		<-time.After(time.Second)
	}
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatalf("send: %v", err)
	}
}

func TestSilentClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, connect func(http.HandlerFunc) net.Conn) {
		wantEnd(t, connect(nothing), time.Now(), 5*time.Second)
	})
}

func TestSlowHeader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, connect func(http.HandlerFunc) net.Conn) {
		conn, began := connect(nothing), time.Now()
		send(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		go drip(conn)
		wantEnd(t, conn, began, 5*time.Second)
	})
}

func TestSlowBody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, connect func(http.HandlerFunc) net.Conn) {
		read := make(chan error, 1)
		conn, began := connect(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		}), time.Now()
		send(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
		go drip(conn)
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		if err := <-read; err == nil {
			t.Errorf("the body was read to its end")
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the body was waited for %v, want 10s", took)
		}
	})
}

func TestClientThatDoesNotReadTheAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, connect func(http.HandlerFunc) net.Conn) {
		wrote := make(chan error, 1)
		conn, began := connect(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
			wrote <- err
		}), time.Now()
		send(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if err := <-wrote; err == nil {
			t.Errorf("all was written to a client that reads nothing")
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the client was waited for %v, want 1m", took)
		}
	})
}

func TestIdleClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, connect func(http.HandlerFunc) net.Conn) {
		conn := connect(nothing)
		send(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		r := bufio.NewReader(conn)
		wantStatus(t, r, http.StatusOK)
		wantEnd(t, r, time.Now(), 2*time.Minute)
	})
}

func TestHugeHeader(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{
		170 << 10: http.StatusOK, // a lookup of 200 of the longest ids, and more
		200 << 10: http.StatusRequestHeaderFieldsTooLarge,
	} {
		inBubble(t, func(t *testing.T, connect func(http.HandlerFunc) net.Conn) {
			conn := connect(nothing)
			go func() {
				_, _ = io.WriteString(conn, "GET /?"+strings.Repeat("x", size)+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			}()
			wantStatus(t, bufio.NewReader(conn), want)
		})
	}
}

// wantStatus reads an answer.
func wantStatus(t *testing.T, r *bufio.Reader, want int) {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != want {
		t.Errorf("answered %d (%v), want %d", res.StatusCode, err, want)
	}
}
