package ops

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
)

const limit = 10 * time.Second

// capped is a server that has so many connections and no more.
type capped struct {
	*cappedListener
	reg  *prometheus.Registry
	held chan struct{} // gets one for each request to /held under way
	done chan struct{} // closed to let them end
}

func serveCapped(t *testing.T, most int) *capped {
	t.Helper()
	listeners, err := listen(t.Context(), []Server{{Name: "public", Addr: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	c := &capped{newCappedListener(listeners[0], most, reg), reg, make(chan struct{}), make(chan struct{})}
	server := newServer(http.HandlerFunc(c.answer), zap.NewNop())
	server.ConnState = c.track
	served := make(chan error, 1)
	go func() { served <- server.Serve(c) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve() = %v, want %v", err, http.ErrServerClosed)
		}
		c.await(t, "every connection is forgotten", func() bool { return len(c.open) == 0 && c.idle.Len() == 0 })
	})
	return c
}

// await polls until ok, which may look at the listener's state.
func (c *capped) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(limit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		done := ok()
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// awaitIdle waits until the server, too, is done with the requests of all
// connections but n: the client has an answer a little earlier.
func (c *capped) awaitIdle(t *testing.T, n int) {
	t.Helper()
	c.await(t, "connections are idle", func() bool { return c.idle.Len() == n })
}

func (c *capped) answer(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/held" {
		c.held <- struct{}{}
		<-c.done
	}
}

// link is one connection of a client.
type link struct {
	net.Conn
	r *bufio.Reader
}

func (c *capped) connect(t *testing.T) link {
	t.Helper()
	l, err := c.tryConnect(t)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	return l
}

// wantRefused fails when a connection is kept, or left waiting. It may be reset
// before the client has noticed that it was made.
func (c *capped) wantRefused(t *testing.T) {
	t.Helper()
	l, err := c.tryConnect(t)
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	l.ask("/")
	l.wantClosed(t)
}

func (c *capped) tryConnect(t *testing.T) (link, error) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", c.Addr().String())
	if err != nil {
		return link{}, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return link{conn, bufio.NewReader(conn)}, nil
}

// ask sends a request; whether it arrives the answer tells.
func (l link) ask(path string) {
	_, _ = io.WriteString(l, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

func (l link) wantOK(t *testing.T) {
	t.Helper()
	wantStatus(t, l.r, http.StatusOK)
}

// wantClosed fails when the server keeps the connection: the deadline passes.
func (l link) wantClosed(t *testing.T) {
	t.Helper()
	if _, err := l.r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v, want a closed connection", err)
	}
}

func (c *capped) wantMetrics(t *testing.T, idle, fresh string) {
	t.Helper()
	want := `
# HELP headcount_connections_closed_total Public connections closed because there were too many: idle ones, to make room, and new ones, when none was idle.
# TYPE headcount_connections_closed_total counter
headcount_connections_closed_total{connection="idle"} ` + idle + `
headcount_connections_closed_total{connection="new"} ` + fresh + "\n"
	if err := testutil.GatherAndCompare(c.reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestNewConnectionIsClosedWhenAllAreAtWork(t *testing.T) {
	t.Parallel()
	c := serveCapped(t, 2)
	busy := []link{c.connect(t), c.connect(t)}
	for _, l := range busy {
		l.ask("/held")
		<-c.held
	}
	for range 3 {
		c.wantRefused(t)
	}
	c.wantMetrics(t, "0", "3")
	close(c.done)
	for _, l := range busy {
		l.wantOK(t)
	}
	c.awaitIdle(t, 2)
	for _, l := range busy {
		l.ask("/") // they are kept
		l.wantOK(t)
	}
}

func TestNewConnectionTakesThePlaceOfTheLongestIdle(t *testing.T) {
	t.Parallel()
	c := serveCapped(t, 3)
	defer close(c.done)
	var links []link
	for i := range 3 {
		links = append(links, c.connect(t))
		links[i].ask("/")
		links[i].wantOK(t)
		c.awaitIdle(t, i+1)
	}
	links[0].ask("/held") // so that the second is the longest idle
	<-c.held
	c.done <- struct{}{}
	links[0].wantOK(t)
	c.awaitIdle(t, 3)
	links[2].ask("/held") // and the third is at work
	<-c.held

	fourth := c.connect(t)
	fourth.ask("/held")
	<-c.held
	links[1].wantClosed(t)
	fifth := c.connect(t)
	fifth.ask("/held")
	<-c.held
	links[0].wantClosed(t)
	c.wantRefused(t)
	c.wantMetrics(t, "2", "1")
}

func TestEndedConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	c := serveCapped(t, 1)
	for range 20 {
		l := c.connect(t)
		l.ask("/")
		l.wantOK(t)
		_ = l.Close()
		c.await(t, "the connection is forgotten", func() bool { return len(c.open) == 0 })
	}
	l := c.connect(t)
	l.ask("/")
	l.wantOK(t)
}

func TestSilentConnectionIsNotIdle(t *testing.T) {
	t.Parallel()
	c := serveCapped(t, 1)
	defer close(c.done)
	silent := c.connect(t)
	c.wantRefused(t)
	silent.ask("/")
	silent.wantOK(t)
}
