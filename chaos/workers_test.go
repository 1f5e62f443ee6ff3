package chaos

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// Of the tests of several workers. A lease of 600 ms leaves a busy machine time to refresh it.
const (
	leaseTTL = 600 * time.Millisecond
	retry    = leaseTTL / 3 // between two tries of a standby

)

// crew is workers of which one leads.
type crew struct {
	*site
	env     []string
	workers []*programtest.Program
}

func (s *site) newCrew(t *testing.T, n int, env ...string) *crew {
	t.Helper()
	c := &crew{site: s, env: append([]string{"HEADCOUNT_LEASE_TTL=" + leaseTTL.String(), "HEADCOUNT_REDIS_TIMEOUT=200ms"}, env...)}
	for range n {
		c.hire(t)
	}
	return c
}

func (c *crew) hire(t *testing.T) *programtest.Program {
	t.Helper()
	w := c.startWorker(t, c.env...)
	w.URL(t, "admin")
	c.workers = append(c.workers, w)
	return w
}

// leader waits until one of the workers holds the lease, by its metric.
func (c *crew) leader(t *testing.T) (leader *programtest.Program) {
	t.Helper()
	eventually(t, "a worker leads", func() bool {
		for _, w := range c.workers {
			if programtest.Metric(t, w.URL(t, "admin"), "headcount_lease_held") == 1 {
				leader = w
				return true
			}
		}
		return false
	})
	return leader
}

// dismiss takes a worker from the crew that is about to be ended.
func (c *crew) dismiss(gone *programtest.Program) {
	var rest []*programtest.Program
	for _, w := range c.workers {
		if w != gone {
			rest = append(rest, w)
		}
	}
	c.workers = rest
}

// holder is who holds the lease: what the key says after its token; "" for nobody.
func (c *crew) holder(t *testing.T) string {
	t.Helper()
	var token, holder string
	_, _ = fmt.Sscan(c.redis.Get(t.Context(), c.keys.Lease()).Val(), &token, &holder) // nothing to scan: nobody
	return holder
}

// awaitSuccessor waits until somebody else holds the lease, and returns how long that took.
func (c *crew) awaitSuccessor(t *testing.T, before string, since time.Time) time.Duration {
	t.Helper()
	eventually(t, "another worker leads", func() bool {
		now := c.holder(t)
		return now != "" && now != before
	})
	return time.Since(since)
}

// TestKilledWorker kills the leading worker in the middle of a pass. A standby leads within the lease's TTL and one
// try.
func TestKilledWorker(t *testing.T) {
	s := begin(t)
	server := redistest.Start(t)
	p := s.newProxy(server.Addr(), nil)
	site := s.newSite(server.Client(), p.addr(), "HEADCOUNT_REDIS_TIMEOUT=200ms")
	site.addRecorder(t)
	load := site.startLoad(t, loadOptions{players: 10, videos: 20, pause: 50 * time.Millisecond}, nil)
	crew := site.newCrew(t, 3)

	var f figures
	for range s.times(3, 30) {
		leader, before := crew.leader(t), crew.holder(t)
		crew.awaitMidPass(t, p)
		killed := time.Now()
		leader.Kill(t)
		f.faults++
		p.set(forwarding)
		f.recovered(crew.awaitSuccessor(t, before, killed))
		crew.dismiss(leader)
		if successor := crew.leader(t); !logged(successor, "leading: this worker holds the lease and makes the passes") {
			t.Errorf("the worker that took over did not say so:\n%s", successor.Output())
		}
		crew.hire(t)
	}
	load.stop()
	crew.wantWithin(t, f, leaseTTL+retry)
	f.lost = site.wantSound(t)
	f.report(t, site.ledger)
}

// TestStoppedWorkers ends the leading worker by SIGTERM in the middle of a pass. It hands over at once.
func TestStoppedWorkers(t *testing.T) {
	s := begin(t)
	server := redistest.Start(t)
	p := s.newProxy(server.Addr(), nil)
	site := s.newSite(server.Client(), p.addr())
	crew := site.newCrew(t, 3, "HEADCOUNT_LEASE_TTL=15s", "HEADCOUNT_REDIS_TIMEOUT=500ms")
	var f figures
	for range s.times(3, 30) {
		leader, before := crew.leader(t), crew.holder(t)
		crew.awaitMidPass(t, p)
		told := time.Now()
		leader.Signal(t, syscall.SIGTERM)
		f.faults++
		p.set(forwarding)
		f.recovered(crew.awaitSuccessor(t, before, told))
		if err := leader.Stop(t); err != nil {
			t.Errorf("the worker ended with %v", err)
		}
		if !logged(leader, "the lease is released") {
			t.Errorf("the worker did not say that it released the lease:\n%s", leader.Output())
		}
		crew.dismiss(leader)
		crew.hire(t)
	}
	crew.wantWithin(t, f, time.Second)
	f.lost = site.wantSound(t)
	f.report(t, site.ledger)
}

// awaitMidPass stalls the proxy while a pass is under way: the pass cannot go on, and has not ended.
func (c *crew) awaitMidPass(t *testing.T, p *proxy) {
	t.Helper()
	p.stallWhen("scan") // of all that the programs send, only a pass is
	eventually(t, "a pass is stalled", p.stalled)
}

// wantWithin checks the times to recover against what was promised, generously: the machine may be busy.
func (c *crew) wantWithin(t *testing.T, f figures, promised time.Duration) {
	t.Helper()
	for _, took := range f.recoveries {
		if most := promised + 5*time.Second; took > most {
			t.Errorf("another worker led after %s, want within %s, and at most %s on a busy machine", took, promised, most)
		}
	}
}

// passLog notes a worker's passes by what it sends to Redis.
type passLog struct {
	mu     sync.Mutex
	begun  time.Time // zero while no pass is under way
	passes []span
}

type span struct{ from, to time.Time }

func (l *passLog) tap(data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case bytes.Contains(data, []byte(onWire("keyspace"))): // with its first question
		l.begun = time.Now()
	case bytes.Contains(data, []byte(onWire("started_at"))): // with its last words
		l.passes = append(l.passes, span{l.begun, time.Now()})
	}
}

func (l *passLog) all() []span {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.passes)
}

// TestSchedule has several workers, started one after the other, make one pass in an interval, and never two at once.
func TestSchedule(t *testing.T) {
	t.Parallel()
	s := begin(t)
	const interval = 1500 * time.Millisecond // long against what a busy machine is late
	workers, intervals := s.times(3, 5), s.times(10, 50)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.addRecorder(t)
	load := site.startLoad(t, loadOptions{players: 5, videos: 20, pause: 50 * time.Millisecond}, nil)
	var logs []*passLog
	for i := range workers {
		l := &passLog{}
		logs = append(logs, l)
		site.startWorker(t, "HEADCOUNT_REDIS_ADDRS="+s.newProxy(server.Addr(), l.tap).addr(),
			"HEADCOUNT_WORKER_INTERVAL="+interval.String())
		if i == 0 {
			site.awaitPasses(t, 1)
		} else {
			<-time.After(interval / time.Duration(workers)) // shifted against the others
		}
	}

	from := time.Now()
	first := site.awaitPasses(t, site.passes(t.Context())+1)
	last := first
	for last < first+intervals {
		last = site.awaitPasses(t, last+1)
	}
	load.stop()
	made, elapsed := countIntervals(allPasses(logs), from, interval)
	if ratio := float64(made) / elapsed; ratio < 0.9 || ratio > 1.1 || made < last-first {
		t.Errorf("%d passes in %.1f intervals, want one in each", made, elapsed)
	}
	wantApart(t, logs)
	f := figures{lost: site.wantSound(t)}
	t.Logf("%d workers made %d passes in %.1f intervals of %s", workers, made, elapsed, interval)
	f.report(t, site.ledger)
}

// countIntervals counts the passes after a moment but for the first, and the intervals that they took: from the end of
// one to the start of the next. One that is late by less than half an interval counts as one: the machine was busy.
func countIntervals(passes []span, from time.Time, interval time.Duration) (made int, intervals float64) {
	var end time.Time // of the pass before
	for _, p := range passes {
		if p.from.Before(from) {
			continue
		}
		if !end.IsZero() {
			gap := float64(p.from.Sub(end)) / float64(interval)
			if gap > 1 {
				gap = math.Round(gap)
			}
			made, intervals = made+1, intervals+gap
		}
		end = p.to
	}
	return made, intervals
}

// awaitPasses waits for the n-th pass and returns how many there have been.
func (s *site) awaitPasses(t *testing.T, n int) (passes int) {
	t.Helper()
	eventually(t, strconv.Itoa(n)+" passes", func() bool {
		passes = s.passes(t.Context())
		return passes >= n
	})
	return passes
}

func allPasses(logs []*passLog) (all []span) {
	for _, l := range logs {
		all = append(all, l.all()...)
	}
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	return all
}

// wantApart checks that no pass began before the one before it had ended.
func wantApart(t *testing.T, logs []*passLog) {
	t.Helper()
	all := allPasses(logs)
	for i := 1; i < len(all); i++ {
		if all[i].from.Before(all[i-1].to) {
			t.Errorf("a pass began %s before another one had ended", all[i-1].to.Sub(all[i].from))
		}
	}
}
