package chaos

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// passLog notes a worker's passes by what it sends to Redis.
type passLog struct {
	mu     sync.Mutex
	begun  time.Time // zero while no pass is under way
	passes []span
}

type span struct{ from, to time.Time }

func (s span) took() time.Duration { return s.to.Sub(s.from) }

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
	workers, intervals := s.times(3, 3+s.rand.IntN(3)), s.times(10, 50)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.addRecorder(t)
	load := site.startLoad(t, loadOptions{players: 5, videos: 20, pause: 50 * time.Millisecond}, nil)
	var logs []*passLog
	var programs []*programtest.Program
	for range workers {
		l := &passLog{}
		logs = append(logs, l)
		programs = append(programs, site.startWorker(t, "HEADCOUNT_REDIS_ADDRS="+s.newProxy(server.Addr(), l.tap).addr(),
			"HEADCOUNT_WORKER_INTERVAL="+interval.String()))
		<-time.After(time.Duration(s.rand.Int64N(int64(interval)))) // shifted against the others
	}

	site.awaitPasses(t, site.passes(t.Context())+1+intervals)
	load.stop()
	passes := allPasses(logs)
	wantApart(t, passes)
	within := 0.1
	if !s.full { // of a few passes, one that comes late on a busy machine is a tenth
		within = 0.25
	}
	wantRate(t, passes[len(passes)-1-intervals:], interval, within)
	site.wantSeen(t, programs, interval)
	f := figures{lost: site.wantSound(t)}
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

// wantRate checks that as many passes were made as there were intervals. An interval runs from the end of a pass to the
// start of the next, so the time from the end of the first pass to that of the last is made up of intervals and of what
// the passes took.
func wantRate(t *testing.T, passes []span, interval time.Duration, within float64) {
	t.Helper()
	made := len(passes) - 1
	var took time.Duration
	for _, p := range passes[1:] {
		took += p.took()
	}
	wall := passes[made].to.Sub(passes[0].to)
	due := float64(wall) / float64(interval+took/time.Duration(made))
	if ratio := float64(made) / due; math.Abs(ratio-1) > within {
		t.Errorf("%d passes in %s, want %.1f", made, wall, due)
	}
	t.Logf("%d passes in %.1f intervals of %s and a pass; a pass took %s in the mean", made, due, interval, took/time.Duration(made))
}

// wantSeen checks what an operator sees of workers of which one leads.
func (s *site) wantSeen(t *testing.T, workers []*programtest.Program, interval time.Duration) {
	t.Helper()
	var leading int
	var made float64
	for _, w := range workers {
		admin := w.URL(t, "admin")
		state := "standby"
		if programtest.Metric(t, admin, "headcount_lease_held") == 1 {
			leading++
			state = "held"
			wantLogged(t, w, leads)
		} else {
			wantLogged(t, w, standsBy)
		}
		wantReady(t, w, "lease", state)
		wantMetric(t, w, "headcount_worker_interval_seconds", interval.Seconds())
		made += programtest.Metric(t, admin, `headcount_passes_total{outcome="complete"}`)
	}
	if told := float64(s.passes(t.Context())); leading != 1 || told-made > 1 || made > told {
		t.Errorf("%d workers lead, their metrics tell of %v complete passes, last_pass of %v; want one leader and as many", leading, made, told)
	}
}

// awaitPasses waits for the n-th pass, and for each before it: together they may take longer than a single wait.
func (s *site) awaitPasses(t *testing.T, n int) {
	t.Helper()
	for next := s.passes(t.Context()) + 1; next <= n; next++ {
		eventually(t, strconv.Itoa(next)+" passes", func() bool { return s.passes(t.Context()) >= next })
	}
}

func allPasses(logs []*passLog) (all []span) {
	for _, l := range logs {
		all = append(all, l.all()...)
	}
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	return all
}

// wantApart checks that no pass began before the one before it had ended.
func wantApart(t *testing.T, all []span) {
	t.Helper()
	for i := 1; i < len(all); i++ {
		if all[i].from.Before(all[i-1].to) {
			t.Errorf("a pass began %s before another one had ended", all[i-1].to.Sub(all[i].from))
		}
	}
}
