package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// answerLimit is what a request may take: twice the two time-outs of Redis that a write may take, 2 s, and more on a
// busy machine.
const answerLimit = 2*time.Second + 4*time.Second

// stall is one way in which Redis does not answer.
type stall struct {
	begin, end func()
}

// TestStalledRedis has Redis not answer, in several ways. Every request is answered in time, lookups with what was
// known last; when Redis answers again, so do plays.
func TestStalledRedis(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	p := s.newProxy(server.Addr(), nil)
	site := s.newSite(server.Client(), p.addr())
	recorder := site.addRecorder(t)
	worker := site.startWorker(t, "HEADCOUNT_REDIS_TIMEOUT=200ms") // or its repetitions outlast the shorter stalls
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 30 * time.Millisecond}, nil)
	length := time.Duration(s.times(2, 5)) * time.Second

	var f figures
	for round := range s.times(1, 3) {
		for name, stall := range map[string]stall{
			"frozen":     {func() { server.Pause(t) }, func() { server.Resume(t) }},
			"paused":     {func() { site.pauseClients(t, length) }, func() {}},
			"stalled":    {func() { p.set(stalling) }, func() { p.set(forwarding) }},
			"blackholed": {func() { p.set(blackholing) }, func() { p.set(forwarding) }},
		} {
			floods := newFloods(fmt.Sprint(name, round))
			before := site.known(t, load)
			stall.begin()
			f.faults++
			over := time.After(length)
			var during sync.WaitGroup
			during.Go(func() { site.sendFloods(t, recorder, floods) })
			during.Go(func() { site.wantKnown(t, load, before, over) })
			wantUnreachable(t, recorder)
			during.Wait()
			stall.end()
			ended := time.Now()
			eventually(t, "plays are recorded again", func() bool { return load.acknowledgedSince(ended) })
			f.recovered(time.Since(ended))
			t.Logf("%s for %s: plays again after %s", name, length, time.Since(ended).Round(time.Millisecond))
		}
	}
	s.hold(&f, time.Second)
	wantLogged(t, recorder, recordedAgain)
	wantReady(t, recorder, "redis", "ok")
	load.stop()
	if s.full { // what a worker repeats may outlast the shorter stalls on a busy machine
		wantDisturbed(t, worker, 0)
	}
	wantNoPanic(t, worker)
	site.wantAnswers(t, load, recorder)
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

func (s *site) pauseClients(t *testing.T, d time.Duration) {
	t.Helper()
	if err := s.redis.Do(t.Context(), "CLIENT", "PAUSE", d.Milliseconds(), "ALL").Err(); err != nil {
		t.Error(err)
	}
}

// lookedUp is a lookup's answer.
type lookedUp struct {
	Viewers int64      `json:"viewers"`
	AsOf    *time.Time `json:"as_of"`
}

const busyPlays = `headcount_plays_total{outcome="busy"}`

const popular = "/v1/videos/10001/viewers"

// known is what a lookup says before a stall.
func (s *site) known(t *testing.T, l *load) (before lookedUp) {
	t.Helper()
	eventually(t, "a lookup of a video with viewers", func() bool {
		a := l.get(t.Context(), s.balancer.pick(0), popular)
		return json.Unmarshal(a.body, &before) == nil && before.Viewers > 0 && before.AsOf != nil
	})
	return before
}

// wantKnown looks up until the stall is over: what was known before, or a little later, and since when.
func (s *site) wantKnown(t *testing.T, l *load, before lookedUp, over <-chan time.Time) {
	begun := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		a := l.get(context.WithoutCancel(t.Context()), s.balancer.pick(0), popular)
		var got lookedUp
		err := json.Unmarshal(a.body, &got)
		if a.code != http.StatusOK || err != nil || got.AsOf == nil {
			t.Errorf("a lookup while Redis is stalled: %s, want what was known", a)
			return
		}
		if got.Viewers == 0 || got.AsOf.Before(*before.AsOf) || got.AsOf.After(begun.Add(time.Second)) {
			t.Errorf("a lookup while Redis is stalled = %d as of %s, was %d as of %s", got.Viewers, got.AsOf, before.Viewers, before.AsOf)
		}
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

// flood is a batch of plays, ready to be sent.
type flood struct {
	plays []viewing
	body  []byte
}

// newFloods makes more than a queue holds. It is done before a stall, so that they come faster than Redis's time-outs
// empty the queue, on a busy machine too.
func newFloods(name string) []flood {
	const batches, plays = 48, 1000
	floods := make([]flood, batches)
	for b := range floods {
		f := flood{plays: make([]viewing, plays)}
		for i := range f.plays {
			f.plays[i] = viewing{fmt.Sprint(10001 + i%10), fmt.Sprintf("%s-%d-%d", name, b, i)}
		}
		f.body = playsBody(f.plays)
		floods[b] = f
	}
	return floods
}

// sendFloods sends batches side by side, until the recorder has refused some since its queue was full: at once, and
// told when to come again.
func (s *site) sendFloods(t *testing.T, recorder *programtest.Program, floods []flood) {
	c := newClient(s.ledger)
	defer c.close()
	busy := func() float64 { return programtest.Metric(t, recorder.URL(t, "admin"), busyPlays) }
	before := busy()
	var mu sync.Mutex
	var sent sync.WaitGroup
	soonest := time.Hour
	for some := range slices.Chunk(floods, 3) {
		sent.Go(func() {
			for _, f := range some {
				_, a := c.playBody(context.WithoutCancel(t.Context()), s.balancer.pick(0), f.plays, f.body)
				switch {
				case a.code == http.StatusServiceUnavailable:
					mu.Lock()
					soonest = min(soonest, a.took)
					mu.Unlock()
					if a.header.Get("Retry-After") == "" {
						t.Errorf("%s without Retry-After", a)
					}
				case a.outcome() != acknowledged: // it may have come when the stall was over
					t.Errorf("a batch while Redis is stalled: %s", a)
				}
				if busy() > before {
					return
				}
			}
		})
	}
	sent.Wait()
	t.Logf("of plays beyond the queue's bound, the first were refused after %s", soonest.Round(time.Millisecond))
	if soonest > time.Second+4*time.Second {
		t.Errorf("the first of the plays beyond the queue's bound was refused after %s, want at once, and within 5 s on a busy machine", soonest)
	}
	if most := c.totals().slowest; most > answerLimit {
		t.Errorf("a batch was answered after %s, want within %s", most, answerLimit)
	}
}

// wantAnswers checks that every request was answered in time, and what an operator saw of the stalls.
func (s *site) wantAnswers(t *testing.T, l *load, recorder *programtest.Program) {
	t.Helper()
	total := l.totals()
	if total.codes[0] > 0 {
		t.Errorf("%d requests had no answer", total.codes[0])
	}
	if total.slowest > answerLimit {
		t.Errorf("the slowest answer took %s, want at most %s", total.slowest, answerLimit)
	}
	t.Logf("answers by status: %v; the slowest took %s", total.codes, total.slowest.Round(time.Millisecond))
	admin := recorder.URL(t, "admin")
	for _, series := range []string{
		`headcount_plays_total{outcome="failed"}`,
		busyPlays,
		`headcount_lookups_total{outcome="stale"}`,
	} {
		if programtest.Metric(t, admin, series) == 0 {
			t.Errorf("%s = 0, want that it shows the stalls", series)
		}
	}
	wantLogged(t, recorder, notRecorded)
}

// TestBrokenConnections resets one in a hundred of the connections' questions and answers. Nobody notices.
func TestBrokenConnections(t *testing.T) {
	s := begin(t)
	server := redistest.Start(t)
	p := s.newProxy(server.Addr(), nil)
	site := s.newSite(server.Client(), p.addr())
	recorder := site.addRecorder(t)
	worker := site.startWorker(t)
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 10 * time.Millisecond}, nil)
	eventually(t, "plays", func() bool { n, _ := site.ledger.totals(); return n > 100 })
	site.judge.breaking = true
	p.setResets(0.01)
	want := s.times(30, 100)
	eventually(t, "enough resets", func() bool { return p.injected() >= want })
	p.setResets(0)
	load.stop()
	f := figures{faults: p.injected()}
	total := load.totals()
	answered := total.codes[http.StatusOK] + total.codes[http.StatusNoContent]
	if refused := total.codes[http.StatusServiceUnavailable]; total.codes[0] > 0 || refused*20 > answered {
		t.Errorf("answers by status: %v, want hardly any without success", total.codes)
	}
	if total.slowest > answerLimit {
		t.Errorf("the slowest answer took %s, want at most %s", total.slowest, answerLimit)
	}
	t.Logf("answers by status: %v; the slowest took %s", total.codes, total.slowest.Round(time.Millisecond))
	wantCounted(t, recorder, `headcount_plays_total{outcome="recorded"}`, 0)
	for _, p := range []*programtest.Program{worker, recorder} {
		wantReady(t, p, "redis", "ok")
	}
	wantNoPanic(t, worker)
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}
