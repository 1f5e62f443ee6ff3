package chaos

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// writes counts what a worker's pass writes.
type writes struct {
	evict     []byte // the script's name, as it is sent
	evictions atomic.Int64
	all       atomic.Int64
}

func newWrites(t *testing.T) *writes {
	t.Helper()
	source, err := os.ReadFile("../aggregator/evict.lua")
	if err != nil {
		t.Fatal(err)
	}
	return &writes{evict: []byte(onWire(redis.NewScript(string(source)).Hash()))}
}

func (w *writes) tap(data []byte) {
	n := bytes.Count(data, w.evict)
	w.evictions.Add(int64(n))
	for _, command := range []string{"set", "hset", "expire"} {
		n += bytes.Count(data, []byte(onWire(command)))
	}
	w.all.Add(int64(n))
}

// TestFrozenWorker stops a worker by SIGSTOP while it evicts, until another one leads, and lets it go on. It notices
// before it writes more than one batch, and viewers who came back meanwhile stay.
func TestFrozenWorker(t *testing.T) {
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.addRecorder(t)
	crew := site.newCrew(t, 0)
	sent := make(map[*programtest.Program]*writes)
	slow := make(map[*programtest.Program]*proxy)
	for range 2 {
		w := newWrites(t)
		p := s.newProxy(server.Addr(), w.tap)
		crew.env = append(crew.env, "HEADCOUNT_REDIS_ADDRS="+p.addr())
		worker := crew.hire(t)
		sent[worker], slow[worker] = w, p
	}

	var f figures
	for round := range s.times(2, 10) {
		leader, before := crew.leader(t), crew.holder(t)
		w, p := sent[leader], slow[leader]
		seen := w.evictions.Load()
		p.setDelay(30 * time.Millisecond)
		gone := site.seedStale(t, round)
		eventually(t, "the worker evicts", func() bool { return w.evictions.Load() > seen })
		leader.Signal(t, syscall.SIGSTOP)
		f.faults++
		crew.awaitSuccessor(t, before, time.Now())
		site.comeBack(t, gone)
		site.awaitPass(t)

		lines, written := strings.Count(leader.Output(), leaseLost), w.all.Load()
		continued := time.Now()
		leader.Signal(t, syscall.SIGCONT)
		eventually(t, "the worker notices", func() bool { return strings.Count(leader.Output(), leaseLost) > lines })
		f.recovered(time.Since(continued))
		p.setDelay(0)
		// A batch is of 128 small hashes and 4 pages of large ones, with at most two commands for each.
		if n := w.all.Load() - written; n > 2*(128+4) {
			t.Errorf("the worker wrote %d times after it had lost its lease, want one batch at most", n)
		}
		if got := programtest.Metric(t, leader.URL(t, "admin"), "headcount_lease_held"); got != 0 {
			t.Errorf("headcount_lease_held = %v of the worker that lost its lease, want 0", got)
		}
	}
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

const leaseLost = `"msg":"the lease was lost"`

// seedStale has another program write viewers who are gone, each of a video of its own.
func (s *site) seedStale(t *testing.T, round int) (gone []viewing) {
	t.Helper()
	now := s.redis.Time(t.Context()).Val().Unix()
	_, err := s.redis.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 600 {
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
func (s *site) comeBack(t *testing.T, gone []viewing) {
	t.Helper()
	c := newClient(s.ledger)
	defer c.close()
	if _, a := c.playAll(t.Context(), s.balancer.pick(0), gone); a.outcome() != acknowledged {
		t.Fatalf("plays while a worker is frozen: %s", a)
	}
}
