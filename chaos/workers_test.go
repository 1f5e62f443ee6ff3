package chaos

import (
	"syscall"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// passMoments are what a pass sends, step by step: when it scans, reads, evicts, publishes, and tells of itself.
func passMoments(t testing.TB) []string {
	t.Helper()
	return []string{"scan", "hrandfield", scriptName(t, "aggregator/evict.lua"), "set", "started_at"}
}

var workersLoad = loadOptions{players: 10, videos: 20, pause: 50 * time.Millisecond}

// TestKilledWorker kills the leading worker, at any time and at each step of a pass. A standby leads within the lease's
// TTL and one try.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.addRecorder(t)
	load := site.startLoad(t, workersLoad, nil)
	crew := s.newCrew(site, 3)

	var f figures
	for round := range s.times(6, 30) {
		leader, before := crew.leader(t)
		m := s.pickMoment(round, passMoments(t)...)
		m.arm(leader.proxy)
		site.seedStale(t, round, 20)
		m.await(s, leader.proxy)
		killed := time.Now()
		leader.Kill(t)
		f.faults++
		m.over(leader.proxy)
		f.recovered(crew.awaitSuccessor(t, before, killed))
		crew.dismiss(leader)
		crew.wantTakenOver(t)
		crew.hire()
	}
	load.stop()
	f.holdTo(t, leaseTTL+retry)
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

// TestStoppedWorkers ends the leading worker by SIGTERM, at any time and at each step of a pass. It hands over at once.
func TestStoppedWorkers(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.addRecorder(t)
	load := site.startLoad(t, workersLoad, nil)
	crew := s.newCrew(site, 3, "HEADCOUNT_LEASE_TTL=15s", "HEADCOUNT_REDIS_TIMEOUT=500ms")

	var f figures
	for round := range s.times(6, 30) {
		leader, before := crew.leader(t)
		m := s.pickMoment(round, passMoments(t)...)
		m.lost = false // a network that breaks at the same time may keep it from releasing the lease
		m.arm(leader.proxy)
		site.seedStale(t, round, 20)
		m.await(s, leader.proxy)
		told := time.Now()
		leader.Signal(t, syscall.SIGTERM)
		f.faults++
		m.over(leader.proxy)
		f.recovered(crew.awaitSuccessor(t, before, told))
		awaitEnd(t, leader.Program)
		if err := leader.Stop(t); err != nil {
			t.Errorf("the worker ended with %v", err)
		}
		wantLogged(t, leader.Program, drains, releases, "stopped")
		crew.dismiss(leader)
		crew.wantTakenOver(t)
		crew.hire()
	}
	load.stop()
	f.holdTo(t, time.Second)
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

// awaitEnd waits until a program has ended that was told to: a second signal would cut it short.
func awaitEnd(t *testing.T, p *programtest.Program) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(limit):
		t.Fatalf("the program still runs after %s; its output:\n%s", limit, p.Output())
	}
}
