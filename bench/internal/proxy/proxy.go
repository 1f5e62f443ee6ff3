// Package proxy stands between a client and Redis: it adds a round trip's time
// without bounding the bandwidth, and counts the turns of the conversation.
package proxy

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy forwards TCP connections on the loopback to one server.
type Proxy struct {
	target   string
	delay    time.Duration // each way
	listener net.Listener
	turns    atomic.Int64
	wg       sync.WaitGroup
}

// New starts a proxy to target (host:port). It delays every chunk of bytes by
// half of roundTrip, each way; chunks keep their order and any number of them
// are under way at once. It stops when ctx ends or Close is called.
func New(ctx context.Context, target string, roundTrip time.Duration) (*Proxy, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, delay: roundTrip / 2, listener: l}
	p.wg.Go(func() { p.accept(ctx) })
	return p, nil
}

// Addr is where the proxy listens, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Turns is how often a client has spoken after the server had: the round trips,
// where a client waits for its answers before it asks again.
func (p *Proxy) Turns() int64 { return p.turns.Load() }

// Close stops listening. Open connections end with their clients.
func (p *Proxy) Close() error { return p.listener.Close() }

func (p *Proxy) accept(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = p.listener.Close() })
	defer stop()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(ctx, client) })
	}
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	var d net.Dialer
	server, err := d.DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()

	var answered atomic.Bool
	answered.Store(true)
	var back sync.WaitGroup
	back.Go(func() { forward(client, server, p.delay, func() { answered.Store(true) }) })
	forward(server, client, p.delay, func() {
		if answered.Swap(false) {
			p.turns.Add(1)
		}
	})
	back.Wait()
}

// chunk is bytes on their way.
type chunk struct {
	data []byte
	due  time.Time
}

// forward copies from src to dst until either ends, each chunk delay later than
// it came, and then closes both ends so that the other direction ends too.
func forward(dst, src net.Conn, delay time.Duration, seen func()) {
	underway := make(chan chunk, 4096)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(underway)
		for {
			buf := make([]byte, 64<<10)
			n, err := src.Read(buf)
			if n > 0 {
				seen()
				underway <- chunk{data: buf[:n], due: time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	})
	deliver(dst, underway)
	_, _ = dst.Close(), src.Close()
	for range underway {
		continue // nobody to deliver to: let the reader see that src is closed
	}
	reader.Wait()
}

// deliver writes each chunk when it is due, until dst is closed.
func deliver(dst io.Writer, underway <-chan chunk) {
	for c := range underway {
		waitUntil(c.due)
		if _, err := dst.Write(c.data); err != nil {
			return
		}
	}
}
