package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// balancer knows the recorders that clients may ask. It is safe for concurrent use.
type balancer struct {
	mu    sync.Mutex
	bases []string // http://host:port
}

func (b *balancer) add(base string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bases = append(b.bases, base)
}

func (b *balancer) remove(base string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest []string
	for _, other := range b.bases {
		if other != base {
			rest = append(rest, other)
		}
	}
	b.bases = rest
}

// pick returns one of the recorders by its number, counted round and round; "" if there is none.
func (b *balancer) pick(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.bases) == 0 {
		return ""
	}
	return b.bases[n%len(b.bases)]
}

// loadOptions say how a load is.
type loadOptions struct {
	name    string        // part of every viewer's id, so that loads on one site keep apart
	players int           // at once
	videos  int           // that they watch
	pause   time.Duration // of each player between two requests
}

// load is players at work.
type load struct {
	*client
	balancer *balancer
	o        loadOptions
	stopped  context.CancelFunc
	players  sync.WaitGroup
	latest   atomic.Int64 // when the youngest acknowledged request was sent, Unix nanoseconds
	surprise func(answer) // told each answer that is not 200 or 204; may be nil
}

// startLoad has players play until stop.
func startLoad(ctx context.Context, l *ledger, b *balancer, seed *rand.Rand, o loadOptions, surprise func(answer)) *load {
	ctx, cancel := context.WithCancel(ctx)
	load := &load{client: newClient(l), balancer: b, o: o, stopped: cancel, surprise: surprise}
	for i := range o.players {
		p := player{load: load, number: i, target: i, rand: rand.New(rand.NewPCG(seed.Uint64(), seed.Uint64()))}
		load.players.Go(func() { p.run(ctx) })
	}
	return load
}

// stop lets every player finish its request.
func (l *load) stop() {
	l.stopped()
	l.players.Wait()
	l.close()
}

// acknowledgedSince reports whether a request was acknowledged that was sent after a moment.
func (l *load) acknowledgedSince(t time.Time) bool { return l.latest.Load() > t.UnixNano() }

// player is one client: it watches, beats, leaves and comes back, as itself or as another viewer.
type player struct {
	*load
	rand     *rand.Rand
	number   int
	target   int // its recorder's, to the balancer
	viewers  int // it has been so far
	current  viewing
	recorded []int64 // times in the current viewing's answers
	seen     int64   // the time in its last heartbeat's answer
}

func (p *player) run(ctx context.Context) {
	p.renew()
	pause := time.NewTicker(p.o.pause)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
			// The request under way is finished when the load is stopped.
			p.act(context.WithoutCancel(ctx))
		}
	}
}

// renew makes another viewer of it, at any recorder: all get their share, also after others were killed.
func (p *player) renew() {
	p.viewers++
	p.target = p.rand.IntN(1 << 20)
	p.recorded, p.seen = nil, 0
	p.current = viewing{p.video(), fmt.Sprintf("%s-%d-%d", p.o.name, p.number, p.viewers)}
}

// video picks one; most viewers watch the first.
func (p *player) video() string {
	n := min(p.rand.IntN(p.o.videos), p.rand.IntN(p.o.videos))
	if n == 1 {
		return "block-v1:a+b/c@[d]*?" // as course platforms name theirs
	}
	return fmt.Sprint(10001 + n)
}

// act sends one request. After one that was not answered, the player asks the next recorder, as itself or as
// somebody else.
func (p *player) act(ctx context.Context) {
	base := p.balancer.pick(p.target)
	if base == "" {
		return
	}
	var a answer
	switch n := p.rand.IntN(20); {
	case n < 11:
		a = p.watch(ctx, base)
	case n < 13:
		a = p.visit(ctx, base)
	case n < 16:
		a = p.batch(ctx, base)
	case n < 19 && len(p.recorded) > 0:
		a = p.quit(ctx, base)
	default:
		p.renew()
		a = p.watch(ctx, base)
	}
	if a.outcome() == acknowledged {
		p.note(a.sent)
		return
	}
	p.target++
	if p.surprise != nil {
		p.surprise(a)
	}
	if p.rand.IntN(2) == 0 {
		p.renew()
	}
}

func (p *player) note(sent time.Time) {
	for {
		latest := p.latest.Load()
		if latest >= sent.UnixNano() || p.latest.CompareAndSwap(latest, sent.UnixNano()) {
			return
		}
	}
}

func (p *player) watch(ctx context.Context, base string) answer {
	at, a := p.play(ctx, base, p.current)
	if at > 0 {
		p.recorded = append(p.recorded, at)
	}
	return a
}

// visit beats for the site, or now and then leaves it: in any case, or unless seen since.
func (p *player) visit(ctx context.Context, base string) (a answer) {
	if n := p.rand.IntN(6); n < 2 {
		return p.offline(ctx, base, p.current.viewer, p.seen*int64(n))
	}
	at, a := p.online(ctx, base, p.current.viewer)
	p.seen = max(p.seen, at)
	return a
}

// batch plays for the current viewer and for some who are never seen again.
func (p *player) batch(ctx context.Context, base string) answer {
	viewings := []viewing{p.current}
	for range p.rand.IntN(10) {
		p.viewers++
		viewings = append(viewings, viewing{p.video(), fmt.Sprintf("%s-%d-%d", p.o.name, p.number, p.viewers)})
	}
	at, a := p.playAll(ctx, base, viewings)
	if at > 0 {
		p.recorded = append(p.recorded, at)
	}
	return a
}

// quit leaves: as its last play, as an earlier one, or whatever was before.
func (p *player) quit(ctx context.Context, base string) answer {
	guard := p.recorded[len(p.recorded)-1]
	switch p.rand.IntN(4) {
	case 0:
		guard = p.recorded[0]
	case 1:
		guard = 0
	}
	return p.leave(ctx, base, p.current, guard)
}
