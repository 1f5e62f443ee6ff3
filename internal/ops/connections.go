package ops

import (
	"container/list"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// cappedListener keeps no more connections open than most. A new one beyond that
// takes the place of the one that has been idle longest, as players keep theirs
// after each beat; when all are at work it is closed at once: a client that waits
// in the queue of the system would not know for what.
type cappedListener struct {
	net.Listener
	most   int
	closed struct{ idle, fresh prometheus.Counter }

	mu   sync.Mutex
	open map[net.Conn]*list.Element // its place among the idle ones, nil while at work
	idle *list.List                 // of net.Conn, idle longest first
}

func newCappedListener(l net.Listener, most int, reg prometheus.Registerer) *cappedListener {
	closed := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "headcount_connections_closed_total",
		Help: "Public connections closed because there were too many: idle ones, to make room, and new ones, when none was idle.",
	}, []string{"connection"})
	c := &cappedListener{Listener: l, most: most, open: make(map[net.Conn]*list.Element), idle: list.New()}
	c.closed.idle, c.closed.fresh = closed.WithLabelValues("idle"), closed.WithLabelValues("new")
	return c
}

// Accept returns the next connection that there is room for.
func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.admit(conn) {
			return conn, err
		}
		l.closed.fresh.Inc()
		reset(conn)
	}
}

// admit counts the connection in, unless there is no room and none can be made.
func (l *cappedListener) admit(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		oldest := l.idle.Front()
		if oldest == nil {
			return false
		}
		l.closed.idle.Inc()
		_ = l.drop(oldest.Value.(net.Conn)).Close() // the client sees that, and the server too
	}
	l.open[conn] = nil
	return true
}

// track is the server's ConnState: it tells what becomes of each connection.
func (l *cappedListener) track(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	place, known := l.open[conn]
	switch {
	case !known: // closed to make room
	case state == http.StateIdle:
		l.open[conn] = l.idle.PushBack(conn)
	case state == http.StateActive && place != nil:
		l.idle.Remove(place)
		l.open[conn] = nil
	case state == http.StateClosed, state == http.StateHijacked:
		l.drop(conn)
	}
}

// drop forgets a connection.
func (l *cappedListener) drop(conn net.Conn) net.Conn {
	if place := l.open[conn]; place != nil {
		l.idle.Remove(place)
	}
	delete(l.open, conn)
	return conn
}

// reset closes a connection by a reset: the client knows at once, and this side
// need not remember it, as it would a connection that was ended in order.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
