package lookup_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestValueIsCachedForCache(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		first := v.pass(t, 7)
		wantViewers(t, v, "10001", 7)
		second := v.pass(t, 8)
		after(cacheFor - time.Nanosecond)
		if got := wantViewers(t, v, "10001", 7); !got.Equal(first) {
			t.Errorf("as of %v, want %v", got, first)
		}
		after(time.Nanosecond)
		if got := wantViewers(t, v, "10001", 8); !got.Equal(second) {
			t.Errorf("as of %v, want %v", got, second)
		}
		wantOutcomes(t, v.reg, map[string]int{"hit": 2, "cached": 1})
	})
}

// The process's own clock has no part in it: here, Redis's is an hour slow.
func TestAgeOfTheLastPassIsByRedisClock(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.pass(t, 7)
		finished := time.Now().Add(-time.Hour).Truncate(time.Second)
		v.redis.SetTime(finished)
		v.redis.HSet("video:worker:last_pass", "finished_at", strconv.FormatInt(finished.Unix(), 10))
		if got := wantViewers(t, v, "10001", 7); !got.Equal(finished) {
			t.Errorf("as of %v, want %v", got, finished)
		}
	})
}

func TestLastKnownValueWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		finished := v.pass(t, 7)
		wantViewers(t, v, "10001", 7)
		v.cut()
		for _, d := range []time.Duration{cacheFor, time.Minute, countTTL - cacheFor - time.Minute - time.Nanosecond} {
			after(d)
			if got := wantViewers(t, v, "10001", 7); !got.Equal(finished) {
				t.Errorf("as of %v, want %v, when the number was true", got, finished)
			}
		}
		after(time.Nanosecond)
		if got, asOf, err := v.Viewers(t.Context(), "10001"); !errors.Is(err, errDown) || got != 0 || !asOf.IsZero() {
			t.Errorf("Viewers after %v without Redis = %d, %v, %v, want the error %v", countTTL, got, asOf, err, errDown)
		}
		wantOutcomes(t, v.reg, map[string]int{"hit": 1, "stale": 3, "failed": 1})
	})
}

// A value looked up while Redis is down is served from memory between tries;
// that must not carry it past its time.
func TestCacheDoesNotProlongLastKnownValue(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.pass(t, 7)
		wantViewers(t, v, "10001", 7)
		v.cut()
		after(countTTL - cacheFor/2)
		wantViewers(t, v, "10001", 7)
		after(cacheFor/2 - time.Nanosecond)
		wantViewers(t, v, "10001", 7)
		after(time.Nanosecond)
		if _, _, err := v.Viewers(t.Context(), "10001"); !errors.Is(err, errDown) {
			t.Errorf("Viewers after %v without Redis: %v, want %v", countTTL, err, errDown)
		}
		wantOutcomes(t, v.reg, map[string]int{"hit": 1, "stale": 1, "cached": 1, "failed": 1})
	})
}

func TestUnknownVideoWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.cut()
		if _, _, err := v.Viewers(t.Context(), "10001"); !errors.Is(err, errDown) {
			t.Errorf("Viewers: %v, want %v: unknown is not zero", err, errDown)
		}
		wantOutcomes(t, v.reg, map[string]int{"failed": 1})
	})
}

func TestRedisIsBack(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.pass(t, 7)
		wantViewers(t, v, "10001", 7)
		v.cut()
		after(time.Minute)
		wantViewers(t, v, "10001", 7)
		v.down.Store(false)
		finished := v.pass(t, 8)
		after(cacheFor)
		if got := wantViewers(t, v, "10001", 8); !got.Equal(finished) {
			t.Errorf("as of %v, want %v", got, finished)
		}
		wantOutcomes(t, v.reg, map[string]int{"hit": 2, "stale": 1})
	})
}

func TestStalledRedisIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.pass(t, 7)
		wantViewers(t, v, "10001", 7)
		v.stalled.Store(true)
		after(cacheFor)
		for _, want := range []time.Duration{timeout, 0, 0} {
			start := time.Now()
			wantViewers(t, v, "10001", 7)
			if took := time.Since(start); took != want {
				t.Errorf("a lookup of a stalled Redis took %v, want %v", took, want)
			}
		}
		after(cacheFor)
		v.stalled.Store(false)
		v.pass(t, 8)
		wantViewers(t, v, "10001", 8)
		wantOutcomes(t, v.reg, map[string]int{"hit": 2, "stale": 1, "cached": 2})
	})
}

func TestStalledRedisFailsUnknownVideoInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.stalled.Store(true)
		start := time.Now()
		if _, _, err := v.Viewers(t.Context(), "10001"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Viewers: %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(start); took != timeout {
			t.Errorf("Viewers took %v, want %v", took, timeout)
		}
	})
}

// A caller who gives up says nothing about Redis: it gets its own error, and
// nobody is served an old value on its account.
func TestCallerWhoGivesUpOnAStalledRedis(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.pass(t, 7)
		wantViewers(t, v, "10001", 7)
		v.stalled.Store(true)
		after(cacheFor)
		ctx, cancel := context.WithTimeout(t.Context(), timeout/2)
		defer cancel()
		start := time.Now()
		if _, _, err := v.Viewers(ctx, "10001"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Viewers: %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(start); took != timeout/2 {
			t.Errorf("Viewers took %v, want the caller's %v", took, timeout/2)
		}
		start = time.Now()
		wantViewers(t, v, "10001", 7) // joins the reading under way
		if took := time.Since(start); took != timeout/2 {
			t.Errorf("Viewers took %v, want the %v that was left", took, timeout/2)
		}
		wantOutcomes(t, v.reg, map[string]int{"hit": 1, "failed": 1, "stale": 1})
	})
}

// heldCounter counts when it is released.
type heldCounter struct {
	calls    atomic.Int64
	released chan struct{}
}

func (c *heldCounter) Count(ctx context.Context, _ string) (int64, time.Time, error) {
	c.calls.Add(1)
	select {
	case <-c.released:
		return 7, time.Unix(1_700_000_000, 0), nil
	case <-ctx.Done():
		return 0, time.Time{}, ctx.Err()
	}
}

func TestConcurrentMissesCollapse(t *testing.T) {
	t.Parallel()
	counter := &heldCounter{}
	inBubble(t, counter, func(t *testing.T, v *virtual) {
		counter.released = make(chan struct{})
		gone, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { // the one who starts the reading, and gives up
			_, _, err := v.Viewers(gone, "10001")
			first <- err
		}()
		synctest.Wait()

		var others sync.WaitGroup
		for range 1000 {
			others.Go(func() { wantViewers(t, v, "10001", 7) })
		}
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("Viewers of the caller who gave up: %v, want %v", err, context.Canceled)
		}
		close(counter.released)
		others.Wait()
		if got := counter.calls.Load(); got != 1 {
			t.Errorf("computations = %d, want 1", got)
		}
		wantOutcomes(t, v.reg, map[string]int{"computed": 1000, "failed": 1})
	})
}

func TestMissesOfDifferentVideosDoNotCollapse(t *testing.T) {
	t.Parallel()
	counter := &heldCounter{}
	inBubble(t, counter, func(t *testing.T, v *virtual) {
		counter.released = make(chan struct{})
		var lookups sync.WaitGroup
		for _, video := range []string{"10001", "10002", "10003"} {
			lookups.Go(func() { wantViewers(t, v, video, 7) })
		}
		synctest.Wait()
		if got := counter.calls.Load(); got != 3 {
			t.Errorf("computations under way = %d, want 3", got)
		}
		close(counter.released)
		lookups.Wait()
	})
}

func TestSlowComputationEndsInTime(t *testing.T) {
	t.Parallel()
	counter := &heldCounter{}
	inBubble(t, counter, func(t *testing.T, v *virtual) {
		counter.released = make(chan struct{})
		start := time.Now()
		if _, _, err := v.Viewers(t.Context(), "10001"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Viewers: %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(start); took != timeout {
			t.Errorf("Viewers took %v, want %v", took, timeout)
		}
	})
}
