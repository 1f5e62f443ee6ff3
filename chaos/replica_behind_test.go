package chaos

import (
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestReplicaBehindPromoted kills a master that has not passed on its last second to the replica, which takes over. That
// second is lost, and nothing else is.
func TestReplicaBehindPromoted(t *testing.T) {
	t.Parallel()
	s := begin(t)
	var f figures
	total := newLedger()
	for range s.times(1, 4) {
		master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
		behind := s.newProxy(master.Addr(), nil)
		_, port := splitAddr(t, behind.addr())
		replica := redistest.Start(t, "--replicaof", "127.0.0.1", port)
		road := s.newProxy(master.Addr(), nil)
		site := s.newSite(master.Client(), road.addr())
		worker := site.startWorker(t)
		recorder := site.addRecorder(t)
		load := site.startLoad(t, failoverLoad, nil)
		began := time.Now()
		site.awaitPass(t)
		eventually(t, "the replica follows", func() bool {
			return info(t.Context(), replica.Client(), "replication", "slave_repl_offset") > 0 &&
				replica.Client().DBSize(t.Context()).Val() == master.Client().DBSize(t.Context()).Val()
		})

		eventually(t, "there is something that must not be lost", func() bool { return load.acknowledgedSince(began.Add(2 * lag)) })

		cut := time.Now()
		behind.set(blackholing)
		eventually(t, "plays go on for a second", func() bool { return load.acknowledgedSince(cut.Add(time.Second)) })
		killed := time.Now()
		master.Kill(t)
		f.faults++
		s.replicaOf(replica, "NO", "ONE")
		site.redis = replica.Client()
		road.retarget(replica.Addr())
		eventually(t, "plays are recorded again", func() bool { return load.acknowledgedSince(killed) })
		f.recovered(time.Since(killed))
		load.stop()

		site.awaitPass(t)
		found := site.differences(t, 3*time.Second)
		lost := count(found, lost) + count(found, stayed)
		f.lost += lost
		doubted := site.ledger.doubt(cut.Add(-lag), killed.Add(lag))
		t.Logf("%d lost after %s that were not passed on, of %d acknowledged within that and %s", lost, killed.Sub(cut), doubted, lag)
		if lost == 0 {
			t.Error("nothing was lost: this scenario tests nothing")
		}
		site.wantSound(t)
		for _, p := range []*programtest.Program{worker, recorder} {
			wantReady(t, p, "redis", "ok")
		}
		wantNoPanic(t, worker)
		acknowledged, _ := site.ledger.totals()
		total.acknowledged += acknowledged
	}
	s.hold(&f, time.Second)
	f.report(t, total)
}
