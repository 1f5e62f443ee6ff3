package chaos

import (
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// proxied is a recorder with a proxy of its own before Redis.
type proxied struct {
	*programtest.Program
	proxy *proxy
}

func (s *scenario) addProxied(site *site) proxied {
	s.Helper()
	p := s.newProxy(site.addr, nil)
	return proxied{site.addRecorder(s, "HEADCOUNT_REDIS_ADDRS="+p.addr()), p}
}

// TestKilledRecorder kills recorders under load, at any time and in the middle of a write. Whoever was acknowledged is
// recorded.
func TestKilledRecorder(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	worker := site.startWorker(t)
	recorders := []proxied{s.addProxied(site), s.addProxied(site)}
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 20 * time.Millisecond}, nil)
	writes := []string{scriptName(t, "recorder/record.lua"), scriptName(t, "recorder/leave.lua")}

	var f figures
	for round := range s.times(6, 100) {
		recorders = append(recorders, s.addProxied(site))
		victim := recorders[0]
		recorders = recorders[1:]
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })
		m := s.pickMoment(round, writes...)
		m.arm(victim.proxy)
		m.await(s, victim.proxy)
		killed := time.Now()
		victim.Kill(t)
		f.faults++
		m.over(victim.proxy)
		site.balancer.remove(victim.URL(t, "public"))
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(killed) })
		f.recovered(time.Since(killed))
		if round%5 == 0 {
			site.wantReplaced(t, victim.Program, recorders[len(recorders)-1].Program)
		}
	}
	load.stop()
	f.holdTo(t, time.Second)
	f.lost = site.wantSound(t)
	if n := programtest.Metric(t, worker.URL(t, "admin"), `headcount_passes_total{outcome="partial"}`); n > 0 || logged(worker, partialPass) {
		t.Error("a recorder's death made a pass partial")
	}
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

// wantReplaced checks what an operator sees of a recorder that was killed: it does not answer and has not said that it stops,
// while another one has started since, is ready and records.
func (s *site) wantReplaced(t *testing.T, victim, successor *programtest.Program) {
	t.Helper()
	c := newClient(s.ledger)
	defer c.close()
	if a := c.get(t.Context(), victim.URL(t, "admin"), "/metrics"); a.code != 0 {
		t.Errorf("the metrics of a recorder that was killed: %s, want no answer", a)
	}
	if logged(victim, drains) || logged(victim, "stopped") {
		t.Errorf("a recorder that was killed said that it stops:\n%s", victim.Output())
	}
	wantLogged(t, successor, "starting", "listening")
	wantReady(t, successor, "redis", "ok")
	wantCounted(t, successor, `headcount_plays_total{outcome="recorded"}`, 0)
}
