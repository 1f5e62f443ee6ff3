package chaos

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestFrozenWorker stops a worker by SIGSTOP in the middle of a pass, until another one leads, and lets it go on. It
// notices before it writes more than one batch, and viewers who came back meanwhile stay.
func TestFrozenWorker(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.testFrozenWorker(built.path(t, "worker"), s.times(1, 5))
}

// TestFrozenWorkerWithLateTimers has a worker whose lease does not end its pass by a timer either, as when the machine is
// busy. Then only its look at the clock before each batch keeps it from writing.
func TestFrozenWorkerWithLateTimers(t *testing.T) {
	t.Parallel()
	s := begin(t)
	const ends = "\tt.ctx, t.cancel = context.WithCancelCause(ctx)\n"
	const endsLate = `	ctx, end := context.WithCancelCause(ctx)
	t.ctx, t.cancel = ctx, func(cause error) {
		if cause == nil {
			end(nil)
			return
		}
		time.AfterFunc(3*time.Second, func() { end(cause) })
	}
`
	s.testFrozenWorker(built.path(t, "worker", overlay(t, "lock/term.go", ends, endsLate)), s.times(1, 5))
}

// Of a pass that a worker is frozen in.
const (
	frozenVideos = 1000 // many batches
	batch        = 128  // hashes that one pipeline reads, evicts from or publishes
	tries        = 3    // a batch is sent, at most: its answer may be overdue when the worker goes on
)

func (s *scenario) testFrozenWorker(worker string, rounds int) {
	s.Helper()
	server := redistest.Start(s)
	site := s.newSite(server.Client(), server.Addr())
	site.binaries.worker = worker
	site.addRecorder(s)
	// The pause is long: what there is to write when the worker goes on is not to be written by its successor before.
	crew := s.newCrew(site, 2, "HEADCOUNT_REDIS_TIMEOUT=500ms", "HEADCOUNT_WORKER_INTERVAL=1s")
	steps := []string{scriptName(s, "aggregator/evict.lua"), "hrandfield"}

	var f figures
	for round := range rounds {
		leader, before := crew.leader(s)
		cut := programtest.Metric(s, leader.URL(s, "admin"), passesCutShort)
		lines := strings.Count(leader.Output(), losesLease)
		m := moment{command: steps[s.rand.IntN(len(steps))]}
		m.arm(leader.proxy)
		gone := site.seedStale(s, round, frozenVideos)
		m.await(s, leader.proxy)
		leader.Signal(s, syscall.SIGSTOP)
		f.faults++
		m.over(leader.proxy)
		crew.awaitSuccessor(s, before, time.Now())
		site.comeBack(s, gone)
		site.awaitPass(s)

		site.forgetCounts(s, gone)
		evictions, others := leader.sent.evictions.Load(), leader.sent.others.Load()
		continued := time.Now()
		leader.Signal(s, syscall.SIGCONT)
		eventually(s, "the worker notices", func() bool { return strings.Count(leader.Output(), losesLease) > lines })
		f.recovered(time.Since(continued))
		evictions, others = leader.sent.evictions.Load()-evictions, leader.sent.others.Load()-others
		if evictions > tries*batch || others > batch {
			s.Errorf("a worker that had lost its lease sent %d evictions and %d other writes, want one batch at most", evictions, others)
		}
		s.Logf("stopped at %s, it sent %d evictions and %d other writes when it went on", m.command, evictions, others)
		wantCounted(s, leader.Program, passesCutShort, cut)
		crew.wantTakenOver(s)
	}
	f.lost = site.wantSound(s)
	site.wantNobodyLeft(s)
	f.report(s, site.ledger)
}

const passesCutShort = `headcount_passes_total{outcome="cut_short"}`

// seedStale has another program write viewers who are gone, each of a video of its own.
func (s *site) seedStale(t testing.TB, round, n int) (gone []viewing) {
	t.Helper()
	now := s.redis.Time(t.Context()).Val().Unix()
	_, err := s.redis.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range n {
			v := viewing{fmt.Sprintf("stale-%d-%d", round, i), "returner"}
			pipe.HSet(t.Context(), s.keys.Online(v.video), v.viewer, now-3600)
			gone = append(gone, v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return gone
}

// comeBack has them all play.
func (s *site) comeBack(t testing.TB, gone []viewing) {
	t.Helper()
	c := newClient(s.ledger)
	defer c.close()
	if _, a := c.playAll(t.Context(), s.balancer.pick(0), gone); a.outcome() != acknowledged {
		t.Fatalf("plays while a worker is frozen: %s", a)
	}
}

// forgetCounts deletes the counts of videos, so that the next to count them has them to write.
func (s *site) forgetCounts(t testing.TB, of []viewing) {
	t.Helper()
	pipe := s.redis.Pipeline()
	for _, v := range of {
		pipe.Del(t.Context(), s.keys.Count(v.video))
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}
