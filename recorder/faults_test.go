package recorder_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
	"headcount/recorder"
)

func TestScriptFlushBetweenWrites(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	for range 3 {
		recordedAt := f.mustPlay(t, "10001", "u1")
		flush(t, f.db)
		f.mustLeave(t, "10001", "u1", recordedAt)
		f.wantCount(t, "10001", "0")
		flush(t, f.db)
		f.mustPlay(t, "10001", "u2")
		f.wantCount(t, "10001", "1")
		f.mustLeave(t, "10001", "u2", 0)
	}
}

func flush(t *testing.T, db *redis.Client) {
	t.Helper()
	if err := db.ScriptFlush(t.Context()).Err(); err != nil {
		t.Errorf("SCRIPT FLUSH: %v", err)
	}
}

func TestScriptFlushUnderLoad(t *testing.T) {
	t.Parallel()
	const videos, callers, plays = 5, 20, 100 // plays per caller
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})

	var load, flushes sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	flushes.Go(func() {
		for ctx.Err() == nil {
			flush(t, f.db)
		}
	})
	var failed atomic.Int64
	for caller := range callers {
		load.Go(func() {
			for i := range plays {
				viewer := fmt.Sprintf("u%d-%d", caller, i)
				if _, err := f.Play(t.Context(), fmt.Sprintf("v%d", i%videos), viewer); err != nil {
					failed.Add(1)
					t.Errorf("Play under SCRIPT FLUSH: %v", err)
				}
			}
		})
	}
	load.Wait()
	stop()
	flushes.Wait()

	recorded := 0
	for v := range videos {
		recorded += len(f.viewers(t, fmt.Sprintf("v%d", v)))
	}
	if want := callers * plays; recorded != want || failed.Load() > 0 {
		t.Errorf("plays recorded = %d, failed = %d, want %d and 0", recorded, failed.Load(), want)
	}
	info, err := f.db.Info(t.Context(), "errorstats").Result()
	if err != nil || !regexp.MustCompile(`errorstat_NOSCRIPT:count=\d{2}`).MatchString(info) {
		t.Errorf("INFO errorstats = %q, %v, want ten NOSCRIPT or more, or the test has shown nothing", info, err)
	}
}

func TestRedisRestart(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: 2 * time.Second})
	f.mustPlay(t, "10001", "u1")

	f.server.Kill(t)
	start := time.Now()
	if _, err := f.Play(t.Context(), "10001", "u2"); err == nil {
		t.Errorf("Play while Redis is down: no error")
	}
	if err := f.Leave(t.Context(), "10001", "u1", 0); err == nil {
		t.Errorf("Leave while Redis is down: no error")
	}
	if took := time.Since(start); took > 2*2*time.Second {
		t.Errorf("a play and a leave took %v to fail, the time-out is 2s", took)
	}

	f.server.Restart(t)
	f.mustPlay(t, "10001", "u3")
	if got := f.viewers(t, "10001"); len(got) != 1 {
		t.Errorf("hash after the restart = %v, want u3", got)
	}
	f.wantCount(t, "10001", "1")
}

func TestRedisRestartUnnoticed(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	f.mustPlay(t, "10001", "u1")
	f.server.Stop(t)
	f.server.Restart(t)
	f.mustPlay(t, "10001", "u1") // over a connection that died, to a server without scripts
}

func TestStalledRedisFailsWithinTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: timeout})
	f.server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := time.Now()
	if _, err := f.Play(ctx, "10001", "u1"); err == nil {
		t.Errorf("Play while Redis stalls: no error")
	}
	if took := time.Since(start); took < timeout || took > 10*timeout {
		t.Errorf("Play took %v to fail, want about %v", took, timeout)
	}
	f.server.Resume(t)
	eventually(t, "a play succeeds after the stall", func() bool {
		_, err := f.Play(t.Context(), "10001", "u1")
		return err == nil
	})
}

func TestFullRedisRefusesPlaysAndTakesLeaves(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t, "--maxmemory-policy", "noeviction"), recorder.Options{Timeout: patience})
	f.mustPlay(t, "10001", "u1")
	f.limitMemory(t, "1")
	if _, err := f.Play(t.Context(), "10001", "u2"); !redis.HasErrorPrefix(err, "OOM") {
		t.Errorf("Play while Redis is full: %v, want OOM", err)
	}
	f.mustLeave(t, "10001", "u1", 0)
	if got := f.viewers(t, "10001"); len(got) != 0 {
		t.Errorf("hash after the leave = %v, want none", got)
	}
	f.limitMemory(t, "0")
	f.mustPlay(t, "10001", "u2")
}

func (f *fixture) limitMemory(t *testing.T, bytes string) {
	t.Helper()
	if err := f.db.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
		t.Fatalf("CONFIG SET maxmemory: %v", err)
	}
}
