package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// mode is what a proxy does with what comes along.
type mode int

const (
	forwarding  mode = iota
	stalling         // holds everything back until the mode changes
	blackholing      // takes everything and delivers nothing; what was lost so cannot go on, so it ends with the mode
	resetting        // ends every connection by a reset, new ones too
)

// proxy stands between a program and Redis, and misbehaves as told at run time.
type proxy struct {
	listener net.Listener
	tap      func([]byte) // told what clients send, as it comes; may be nil
	wg       sync.WaitGroup

	mu      sync.Mutex
	target  string // host:port
	mode    mode
	changed chan struct{} // closed when the mode changes
	resets  float64       // probability that a chunk ends its connection instead
	rand    *rand.Rand
	links   map[*link]struct{}
	faults  int    // resets by chance
	stallAt string // a client that sends this stalls everything; "": nothing does
}

// link is one client's connection and the one on to the target.
type link struct {
	client, server net.Conn
	lossy          bool // bytes were swallowed
}

// newProxy starts a proxy to target, host:port, until ctx ends.
func newProxy(ctx context.Context, target string, seed *rand.Rand, tap func([]byte)) (*proxy, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{
		target: target, listener: l, tap: tap,
		changed: make(chan struct{}),
		rand:    rand.New(rand.NewPCG(seed.Uint64(), seed.Uint64())),
		links:   make(map[*link]struct{}),
	}
	p.wg.Go(func() { p.accept(ctx) })
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// close ends everything and waits for it.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.set(resetting)
	p.wg.Wait()
}

// set changes the mode, and ends the connections that cannot go on in it.
func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		if m == resetting || (l.lossy && m != blackholing) {
			l.reset()
		}
	}
}

// stallWhen stalls everything when a client next sends the command.
func (p *proxy) stallWhen(command string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stallAt = onWire(command)
}

// onWire is how a command's name, or any other argument, stands in what a client sends.
func onWire(argument string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(argument), argument) }

// stalled reports whether it stalls.
func (p *proxy) stalled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode == stalling
}

// heard looks at what a client sends.
func (p *proxy) heard(data []byte) {
	if p.tap != nil {
		p.tap(data)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stallAt != "" && bytes.Contains(data, []byte(p.stallAt)) {
		p.mode, p.stallAt = stalling, ""
	}
}

// retarget leads to another server from now on, and ends the connections to the earlier one.
func (p *proxy) retarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
	for l := range p.links {
		l.reset()
	}
}

// setResets has that share of the chunks, 0 to 1, end their connection instead of being delivered.
func (p *proxy) setResets(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resets = share
}

// injected is how many connections setResets has ended.
func (p *proxy) injected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults
}

func (p *proxy) accept(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = p.listener.Close() })()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(ctx, conn) })
	}
}

func (p *proxy) serve(ctx context.Context, conn net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	var d net.Dialer
	server, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		reset(conn)
		return
	}
	l := &link{client: conn, server: server}
	if !p.add(l) {
		return
	}
	defer p.drop(l)
	defer context.AfterFunc(ctx, l.reset)()
	var back sync.WaitGroup
	back.Go(func() { p.copy(l, conn, server, nil) })
	p.copy(l, server, conn, p.heard)
	back.Wait()
}

func (p *proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == resetting {
		l.reset()
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *proxy) drop(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// copy carries bytes from src to dst until one of them ends, and then ends the other.
func (p *proxy) copy(l *link, dst, src net.Conn, heard func([]byte)) {
	defer func() { _, _ = dst.Close(), src.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && heard != nil {
			heard(buf[:n])
		}
		if n > 0 && p.pass(l) {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass decides about a chunk that has come, and holds it back for as long as it must wait.
func (p *proxy) pass(l *link) (deliver bool) {
	p.mu.Lock()
	if p.rand.Float64() < p.resets {
		p.faults++
		l.reset()
	}
	p.mu.Unlock()
	for {
		p.mu.Lock()
		mode, changed := p.mode, p.changed
		l.lossy = l.lossy || mode == blackholing
		p.mu.Unlock()
		if mode != stalling {
			return mode == forwarding
		}
		<-changed
	}
}

// reset ends both connections at once. It may be called more than once.
func (l *link) reset() {
	reset(l.client)
	reset(l.server)
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
