package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// Recorders are replaced one after the other while players beat. Every play that was acknowledged is in Redis, and no
// viewer is counted twice, whichever recorders they were seen by.
func (b binaries) testRollingRestart(t *testing.T) {
	const recorders, rounds, players = 2, 3, 20
	s := newStore(t, redistest.Start(t))
	worker := b.startWorker(t, s)
	pool := &recorderPool{http: &http.Client{Timeout: programtest.Limit, Transport: &http.Transport{}}}
	defer pool.http.CloseIdleConnections()
	for range recorders {
		pool.add(t, b.startRecorder(t, s))
	}

	var began, stopped atomic.Int64 // viewers who have begun to play; not 0: players stop
	acknowledged := make([]map[string]bool, players)
	var load sync.WaitGroup
	for player := range players {
		acknowledged[player] = make(map[string]bool)
		load.Go(func() {
			for n := 0; stopped.Load() == 0; n++ {
				viewer := fmt.Sprintf("u%d-%d", player, n/5) // each beats five times, by chance elsewhere
				if n%5 == 0 {
					began.Add(1)
				}
				if pool.play(t, viewer) {
					acknowledged[player][viewer] = true
				}
			}
		})
	}
	load.Go(func() { s.watchCounts(t, &began, &stopped) })

	for range rounds * recorders {
		before := began.Load()
		pool.add(t, b.startRecorder(t, s))
		if err := pool.removeOldest().Stop(t); err != nil {
			t.Errorf("a recorder ended with %v", err)
		}
		programtest.Eventually(t, "plays go on", func() bool { return began.Load() > before+players })
		worker.Wait(t, passComplete)
	}
	stopped.Store(1)
	load.Wait()
	s.wantRecorded(t, acknowledged, began.Load())
}

// watchCounts checks that there are never more viewers than have begun to play.
func (s store) watchCounts(t *testing.T, began, stopped *atomic.Int64) {
	for stopped.Load() == 0 {
		pipe := s.Client().Pipeline()
		inHash := pipe.HLen(t.Context(), s.keys.Online("10001"))
		published := pipe.Get(t.Context(), s.keys.Count("10001"))
		_, _ = pipe.Exec(t.Context()) // each has its own error
		count, err := strconv.ParseInt(published.Val(), 10, 64)
		if err != nil && !errors.Is(published.Err(), redis.Nil) {
			t.Errorf("count = %q, %v", published.Val(), published.Err())
		}
		if most := began.Load(); inHash.Val() > most || count > most {
			t.Errorf("%d in the hash and a count of %d, of at most %d viewers", inHash.Val(), count, most)
		}
	}
}

func (s store) wantRecorded(t *testing.T, acknowledged []map[string]bool, began int64) {
	t.Helper()
	hash, err := s.Client().HGetAll(t.Context(), s.keys.Online("10001")).Result()
	if err != nil {
		t.Fatal(err)
	}
	distinct := 0
	for _, viewers := range acknowledged {
		distinct += len(viewers)
		for viewer := range viewers {
			if hash[viewer] == "" {
				t.Errorf("%s's play was acknowledged and is missing", viewer)
			}
		}
	}
	if len(hash) > int(began) || distinct == 0 {
		t.Errorf("%d viewers in the hash, %d acknowledged, %d began", len(hash), distinct, began)
	}
}

// recorderPool sends plays to recorders as a load balancer does.
type recorderPool struct {
	http *http.Client

	mu       sync.Mutex
	running  []*programtest.Program // the oldest first
	addrs    []string
	draining string // of the one that was removed last: a balancer takes a moment to notice
}

func (p *recorderPool) add(t *testing.T, recorder *programtest.Program) {
	t.Helper()
	addr := recorder.URL(t, "public")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.addrs = append(p.running, recorder), append(p.addrs, addr)
}

// removeOldest takes a recorder out that is about to be stopped. Players go on to send some plays to it.
func (p *recorderPool) removeOldest() *programtest.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.running[0]
	p.draining = p.addrs[0]
	p.running, p.addrs = p.running[1:], p.addrs[1:]
	return oldest
}

func (p *recorderPool) pick() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := rand.IntN(len(p.addrs) + 1); i < len(p.addrs) {
		return p.addrs[i]
	}
	return p.draining
}

// play reports whether a play was acknowledged. One that was not may be recorded all the same, and is no failure: its
// recorder was gone.
func (p *recorderPool) play(t *testing.T, viewer string) (acknowledged bool) {
	base := p.pick()
	if base == "" {
		return false
	}
	body := strings.NewReader(`{"viewer_id":"` + viewer + `"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/videos/10001/play", body)
	if err != nil {
		t.Error(err)
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return false
	}
	return res.StatusCode == http.StatusOK
}
