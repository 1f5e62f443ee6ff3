package chaos

import (
	"syscall"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestRedisFullWhileAWorkerLeads fills Redis while a worker holds the lease. Plays are refused, its passes make room, it
// keeps the lease, and nothing that was acknowledged is lost.
func TestRedisFullWhileAWorkerLeads(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	site := s.newSite(server.Client(), server.Addr())
	recorder := site.addRecorder(t)
	worker := site.startWorker(t, "HEADCOUNT_LEASE_TTL=60s")
	worker.Wait(t, `"msg":"leading: this worker holds the lease`)
	var failed failures
	load := site.startLoad(t, failoverLoad, failed.note)
	var f figures
	for range s.times(1, 5) {
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })
		before, _ := failed.totals()
		worker.Signal(t, syscall.SIGSTOP) // or its passes would evict before Redis is full
		site.fill(t, server)
		f.faults++
		eventually(t, "plays are refused", func() bool { n, _ := failed.totals(); return n > before })
		wantReady(t, recorder, "redis", "ok")
		worker.Signal(t, syscall.SIGCONT)
		began := time.Now()
		eventually(t, "plays are recorded again", func() bool { return load.acknowledgedSince(began) })
		f.recovered(time.Since(began))
		site.awaitPass(t)
	}
	setMemory(t, server, "0")
	wantLogged(t, recorder, recordedAgain)
	load.stop()
	s.hold(&f, time.Second)
	f.lost = site.wantSound(t)
	admin := worker.URL(t, "admin")
	if held := programtest.Metric(t, admin, "headcount_lease_held"); held != 1 {
		t.Errorf("headcount_lease_held = %v, want 1: a full Redis goes on refreshing the lease", held)
	}
	if alone := programtest.Metric(t, admin, "headcount_passes_without_lease_total"); alone != 0 {
		t.Errorf("%v passes were made without the lease, want none", alone)
	}
	if logged(worker, losesLease) || logged(worker, cannotAsk) {
		t.Errorf("the leader lost its lease:\n%s", worker.Output())
	}
	wantReady(t, worker, "lease", "held")
	wantCounted(t, worker, viewersEvicted, 0)
	wantNoPanic(t, worker)
	wantNotRecorded(t, recorder, "OOM")
	for code, n := range load.totals().codes {
		if code != 200 && code != 204 && code != 503 {
			t.Errorf("%d answers %d, want 503 where Redis is full", n, code)
		}
	}
	f.report(t, site.ledger)
}
