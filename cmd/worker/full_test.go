package main

import (
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

const redisIsFull = `"msg":"Redis is full and takes no lease: `

// Redis fills up with viewers who are gone while no worker runs. Plays are refused, nothing breaks, and a worker that
// comes then makes room.
func (b binaries) testFullRedis(t *testing.T) {
	s := newStore(t, redistest.Start(t, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction"))
	recorder := b.startRecorder(t, s)
	base := recorder.URL(t, "public") + "/v1/videos/10001/"
	play := func() int { return programtest.Post(t, base+"play", `{"viewer_id":"u1"}`).Code }
	if got := play(); got != http.StatusOK {
		t.Fatalf("play before = %d, want 200", got)
	}
	s.fill(t)
	if got := play(); got != http.StatusServiceUnavailable {
		t.Errorf("play while Redis is full = %d, want 503", got)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := programtest.Get(t, recorder.URL(t, "admin")+path); got.Code != http.StatusOK {
			t.Errorf("the recorder's %s while Redis is full = %v, want 200", path, got)
		}
	}

	worker := b.startWorker(t, s)
	worker.Wait(t, redisIsFull)
	programtest.Eventually(t, "plays recover", func() bool { return play() == http.StatusOK })
	worker.Wait(t, leading)
	worker.Wait(t, passComplete)
	s.wantCount(t, "10001", "1")
	if got := programtest.Metric(t, worker.URL(t, "admin"), "headcount_passes_without_lease_total"); got < 1 {
		t.Errorf("headcount_passes_without_lease_total = %v, want 1 or more", got)
	}
	if s.exists(t, s.keys.Online("1")) {
		t.Error("the viewers who are gone are still there")
	}
}

// fill writes stale viewers until Redis refuses more.
func (s store) fill(t *testing.T) {
	t.Helper()
	// Whether there is memory is decided when a script begins, so each writes a little.
	script := redis.NewScript(`
		for viewer = 1, 1000 do
			redis.call('HSET', KEYS[1], 'somebody who left long ago ' .. viewer, redis.call('TIME')[1] - 3600)
		end`)
	for video := 1; ; video++ {
		err := script.Run(t.Context(), s.Client(), []string{s.keys.Online(strconv.Itoa(video))}).Err()
		if redis.HasErrorPrefix(err, "OOM") {
			break
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatalf("fill Redis with video %d: %v", video, err)
		}
	}
	// Well below what is used, or a connection that closes would make room.
	if err := s.Client().ConfigSet(t.Context(), "maxmemory", "7mb").Err(); err != nil {
		t.Fatal(err)
	}
}
