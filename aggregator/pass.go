package aggregator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

// pass is what all sweeps of one pass share.
type pass struct {
	*Aggregator
	window time.Duration
	now    time.Time // when the pass began, by the servers' clocks, whole seconds
	oldest int64     // Unix seconds: who was seen before is stale
	allTTL bool      // every key of the database had a TTL when the pass began
	size   int64     // keys in the database when the pass began, as far as known

	number  uint8   // in the memory
	memory  *memory // nil: nothing is remembered
	masters int     // how many are swept
	trust   trust
	down    unreachable

	beforeWrites func()   // ends the pass's context when it may not write any more
	observer     Observer // nil: nobody
}

// ahead is how far the clock of another program that writes may be in front of
// Redis's before its times are implausible; behind, how far it may be slow
// without the pass missing when its viewers go stale (and a second for rounding).
const (
	ahead  = 2 * time.Minute
	behind = 2*time.Minute + time.Second
)

// setClock says when the window is. The masters of a cluster have clocks of
// their own, and one's sweep counts videos that another one keeps: nobody is
// stale before the slowest of them says so.
func (p *pass) setClock(slowest time.Time) {
	p.now = slowest.Truncate(time.Second)
	p.oldest = p.now.Add(-p.window).Unix()
}

// begin gets a pass ready, with a sweep for every server that answers. The
// error says which do not, or that there may be more.
func (a *Aggregator) begin(ctx context.Context) (*pass, []*sweep, error) {
	p := &pass{Aggregator: a, window: time.Duration(a.window.Load())}
	nodes, err := redisclient.Masters(ctx, a.rdb)
	all := make([]*sweep, len(nodes))
	for i, node := range nodes {
		all[i] = &sweep{pass: p, node: node}
	}
	err = errors.Join(err, sideBySide(all, func(s *sweep) error { return s.meet(ctx) }))

	var sweeps []*sweep
	for _, s := range all {
		if s.met {
			sweeps = append(sweeps, s)
		} else {
			p.down.add(redisclient.Address(s.node))
		}
	}
	if len(sweeps) > 0 {
		p.compare(sweeps)
		p.recall(sweeps)
		p.beObserved()
		p.trust = a.trusted(ctx, p.now)
	}
	return p, sweeps, err
}

// compare draws the conclusions from what the servers have told.
func (p *pass) compare(sweeps []*sweep) {
	slowest, fastest := sweeps[0].clock.server, sweeps[0].clock.server
	p.allTTL = true
	for _, s := range sweeps {
		if s.clock.server.Before(slowest) {
			slowest = s.clock.server
		}
		if s.clock.server.After(fastest) {
			fastest = s.clock.server
		}
		p.allTTL = p.allTTL && s.noneForever
		p.size += s.size
	}
	p.setClock(slowest)
	for _, s := range sweeps {
		s.behind = fastest.Sub(s.clock.server)
	}
}

// recall takes up what is remembered from the last pass, as far as it holds.
func (p *pass) recall(sweeps []*sweep) {
	p.memory = p.kept.Load()
	if p.memory == nil {
		const keysOfAVideo = 2
		p.memory = newMemory(p.size / keysOfAVideo)
		p.kept.Store(p.memory)
	}
	clocks := make(map[string]reference, len(sweeps))
	for _, s := range sweeps {
		clocks[s.server] = s.clock
	}
	p.memory.check(p.window, clocks)
	p.number = p.memory.begin()
	p.masters = len(sweeps)
}

// beObserved lets the observer know that the pass begins.
func (p *pass) beObserved() {
	if p.o.Observe == nil {
		return
	}
	p.observer = p.o.Observe(p.now)
	if p.observer.Anew() {
		p.memory.tellAnew()
	}
}

// meet asks a server for its clock, for its identity, and once for all keys
// whether any has no TTL, so that not each must be asked. What it does not know
// about itself is no fault.
func (s *sweep) meet(ctx context.Context) error {
	pipe := s.node.Pipeline()
	now := pipe.Time(ctx)
	server := pipe.Info(ctx, "server")
	keyspace := pipe.Info(ctx, "keyspace")
	size := pipe.DBSize(ctx)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := now.Err(); err != nil {
		return fmt.Errorf("aggregator: ask Redis for the time: %w", err)
	}
	s.met = true
	s.size = size.Val()
	s.clock = reference{server: now.Val(), ours: time.Now()}
	s.server = identity(s.node, server.Val())
	if node, ok := s.node.(*redis.Client); ok {
		s.noneForever = allHaveTTL(keyspace.Val(), node.Options().DB)
	}
	return nil
}

// identity tells servers apart, and one from itself before a restart: behind
// Sentinel, all have one address. It takes INFO server.
func identity(node redis.UniversalClient, info string) string {
	return redisclient.Address(node) + " " + redisclient.InfoField(info, "run_id")
}

// allHaveTTL reads a database's line of INFO keyspace: "db0:keys=10,expires=10,avg_ttl=0".
func allHaveTTL(info string, db int) bool {
	_, line, ok := strings.Cut(info, fmt.Sprintf("db%d:keys=", db))
	total, rest, ok2 := strings.Cut(line, ",expires=")
	withTTL, _, ok3 := strings.Cut(rest, ",")
	return ok && ok2 && ok3 && total == withTTL
}

// sideBySide calls fn for all sweeps at once and returns every error. A panic
// becomes one, with its stack: it would end the process from a goroutine of ours.
func sideBySide(sweeps []*sweep, fn func(*sweep) error) error {
	errs := make([]error, len(sweeps))
	var running sync.WaitGroup
	for i, s := range sweeps {
		running.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("aggregator: panic: %v\n%s", p, debug.Stack())
				}
				if errs[i] != nil && len(sweeps) > 1 {
					errs[i] = fmt.Errorf("master %s: %w", redisclient.Address(s.node), errs[i])
				}
				if errs[i] != nil && s.sum.Errors == 0 {
					s.sum.Errors = 1
				}
			}()
			errs[i] = fn(s)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
