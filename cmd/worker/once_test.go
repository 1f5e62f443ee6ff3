package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
	"headcount/lock"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	s.seed(t, "10001", "u1", 0)
	out, err := s.once(t)
	if err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
	if !strings.Contains(out, passComplete) || strings.Contains(out, "listening") {
		t.Errorf("printed:\n%swant a complete pass and no listener", out)
	}
	s.wantCount(t, "10001", "1")
	if s.exists(t, s.keys.Lease()) {
		t.Error("the lease was not released")
	}
}

func TestOnceHeldByAnother(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	s.seed(t, "10001", "u1", 0)
	if _, err := redislock.Obtain(t.Context(), s.Client(), s.keys.Lease(), time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	out, err := s.once(t)
	if err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
	if !strings.Contains(out, `"msg":"no pass made: another worker holds the lease"`) {
		t.Errorf("printed:\n%swant that no pass was made", out)
	}
	if s.exists(t, s.keys.Count("10001")) || s.exists(t, s.keys.LastPass()) {
		t.Error("a pass was made")
	}
	if !s.exists(t, s.keys.Lease()) {
		t.Error("the other's lease is gone")
	}
}

func TestOnceRedisDown(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t))
	s.Kill(t)
	if _, err := s.once(t); !errors.Is(err, lock.ErrUnreachable) {
		t.Errorf("run() = %v, want %v", err, lock.ErrUnreachable)
	}
}

func TestOnceRedisFull(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t))
	s.seed(t, "10001", "gone", time.Hour)
	if err := s.Client().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	out, err := s.once(t)
	if !redis.HasErrorPrefix(err, "OOM") {
		t.Errorf("run() = %v, want that the pass could not be written down", err)
	}
	if !strings.Contains(out, redisIsFull) || !strings.Contains(out, `"evicted":1`) {
		t.Errorf("printed:\n%swant a pass without the lease", out)
	}
	if s.exists(t, s.keys.Online("10001")) {
		t.Error("the stale viewer is still there")
	}
}

// The lease is lost in a pass that is long enough to see it at the next refresh.
func TestOnceLosesTheLease(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t))
	// In parts, for Redis answers BUSY to whoever repeats a script that runs for seconds.
	const seed = `local now = redis.call('TIME')[1]; for i = 1, 10000 do redis.call('HSET', KEYS[1] .. i, 'u1', now) end`
	for part := range 10 {
		key := s.keys.Online(fmt.Sprintf("%d-", part))
		if err := s.Client().Eval(t.Context(), seed, []string{key}).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.once(t, "HEADCOUNT_LEASE_TTL=600ms")
		ended <- err
	}()
	programtest.Eventually(t, "the lease is taken away", func() bool {
		return s.Client().Del(t.Context(), s.keys.Lease()).Val() == 1
	})
	if err := <-ended; !errors.Is(err, aggregator.ErrCutShort) || !errors.Is(err, lock.ErrLost) {
		t.Errorf("run() = %v, want %v as %v", err, aggregator.ErrCutShort, lock.ErrLost)
	}
}

// One video that cannot be read costs no other its count.
func TestOnceWithErrors(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t))
	s.seed(t, "good", "u1", 0)
	s.seed(t, "fine", "u1", 0)
	s.seed(t, "bad", "u1", 0)
	if err := s.Client().Set(t.Context(), s.keys.Count("bad"), "7", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	allowed := []any{"ACL", "SETUSER", "worker", "on", ">pw", "+@all"}
	for _, key := range []string{s.keys.Online("good"), s.keys.Online("fine"), s.keys.Count("*"), s.keys.Lease(), s.keys.LastPass()} {
		allowed = append(allowed, "~"+key)
	}
	if err := s.Client().Do(t.Context(), allowed...).Err(); err != nil {
		t.Fatal(err)
	}

	out, err := s.once(t, "HEADCOUNT_REDIS_USERNAME=worker", "HEADCOUNT_REDIS_PASSWORD=pw")
	if err == nil || !strings.Contains(err.Error(), `video "bad"`) || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("run() = %v, want what failed about the video", err)
	}
	if !strings.Contains(out, `"msg":"pass partial: what failed keeps its earlier count"`) || !strings.Contains(out, `"errors":`) {
		t.Errorf("printed:\n%swant a partial pass with errors", out)
	}
	s.wantCount(t, "good", "1")
	s.wantCount(t, "fine", "1")
	s.wantCount(t, "bad", "7")
	last := s.Client().HGetAll(t.Context(), s.keys.LastPass()).Val()
	if last["errors"] == "0" || last["finished_at"] != "" {
		t.Errorf("last pass = %v, want errors and no finished_at", last)
	}
	if s.exists(t, s.keys.Lease()) {
		t.Error("the lease was not released")
	}
}
