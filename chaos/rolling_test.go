package chaos

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestRollingRestart replaces recorders by SIGTERM under load, behind a balancer that goes by their readiness. Nobody
// is refused.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.startWorker(t)
	const drain = "HEADCOUNT_RECORDER_DRAIN=4s"
	recorders := []*programtest.Program{site.addRecorder(t, drain), site.addRecorder(t, drain)}
	var mu sync.Mutex
	var refusals []answer
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 30 * time.Millisecond}, func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		refusals = append(refusals, a)
	})

	var f figures
	for range s.times(3, 20) {
		recorders = append(recorders, site.addRecorder(t, drain))
		oldest := recorders[0]
		recorders = recorders[1:]
		f.recovered(site.drain(t, oldest))
		f.faults++
	}
	load.stop()
	for _, a := range refusals {
		t.Errorf("refused: %s", a)
	}
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

// drain stops a recorder. Its readiness goes first, and the balancer goes by it, while the recorder still answers. It
// returns how long stopping took.
func (s *site) drain(t *testing.T, recorder *programtest.Program) time.Duration {
	t.Helper()
	public, admin := recorder.URL(t, "public"), recorder.URL(t, "admin")
	began := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- recorder.Stop(t) }()

	c := newClient(s.ledger)
	defer c.close()
	eventually(t, "the recorder is not ready", func() bool {
		a := c.get(t.Context(), admin, "/readyz")
		return a.code == http.StatusServiceUnavailable
	})
	if a := c.get(t.Context(), public, "/v1/videos/10001/viewers"); a.code != http.StatusOK {
		t.Errorf("a lookup while draining: %s; want an answer", a)
	}
	s.balancer.remove(public)
	if err := <-stopped; err != nil {
		t.Errorf("the recorder ended with %v", err)
	}
	if logged(recorder, "drained with requests still under way") {
		t.Error("a request was cut off")
	}
	return time.Since(began)
}
