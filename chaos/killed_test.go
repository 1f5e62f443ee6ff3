package chaos

import (
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestKilledRecorder kills recorders under load. Whoever was acknowledged is recorded.
func TestKilledRecorder(t *testing.T) {
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	worker := site.startWorker(t)
	recorders := []*programtest.Program{site.addRecorder(t), site.addRecorder(t)}
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 20 * time.Millisecond}, nil)

	var f figures
	for range s.times(6, 100) {
		recorders = append(recorders, site.addRecorder(t))
		victim := recorders[0]
		recorders = recorders[1:]
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })
		killed := time.Now()
		victim.Kill(t)
		f.faults++
		site.balancer.remove(victim.URL(t, "public"))
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(killed) })
		f.recovered(time.Since(killed))
	}
	load.stop()
	f.lost = site.wantSound(t)
	if logged(worker, "pass partial") {
		t.Error("a recorder's death made a pass partial")
	}
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}
