package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
	"headcount/lock"
)

// clockSlack allows for Redis counting whole milliseconds of the time of day, and the tests the monotonic clock.
const clockSlack = 3 * time.Millisecond

// realTTL is long enough for calls to keep their deadlines, a third of it, on a busy machine.
const realTTL = 2 * time.Second

// limit bounds what may take long only because the machine is busy. Exact moments are tested in virtual time.
const limit = 10 * time.Second

func TestAcquireHeldByAnother(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	acquire(t.Context(), t, lock.New(client, o))

	if _, err := lock.New(client, o).Acquire(t.Context()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("Acquire() = %v, want ErrHeld", err)
	}
}

func TestAcquireTwiceOnOneLease(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	lease := lock.New(client, o)

	const tries = 8
	errs := make([]error, tries)
	var wg sync.WaitGroup
	for i := range tries {
		wg.Go(func() {
			var term *lock.Term
			if term, errs[i] = lease.Acquire(t.Context()); errs[i] == nil {
				t.Cleanup(func() { _ = term.Release() })
			}
		})
	}
	wg.Wait()

	terms := 0
	for _, err := range errs {
		if err == nil {
			terms++
		} else if !errors.Is(err, lock.ErrHeld) {
			t.Errorf("Acquire() = %v, want ErrHeld", err)
		}
	}
	if terms != 1 {
		t.Errorf("%d of %d tries got the lease, want 1", terms, tries)
	}
}

func TestValueNamesTheHolder(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	o.Holder = "web-1:4711"
	acquire(t.Context(), t, lock.New(client, o))

	got, err := client.Get(t.Context(), o.Key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got, " web-1:4711") {
		t.Errorf("GET %s = %q, want it to end with the holder", o.Key, got)
	}
}

func TestReleaseLetsTheNextIn(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	o.TTL = time.Minute // so only the release can explain the takeover
	holder := acquire(t.Context(), t, lock.New(client, o))
	if err := holder.Release(); err != nil {
		t.Fatalf("Release() = %v", err)
	}
	if cause := context.Cause(holder.Context()); !errors.Is(cause, context.Canceled) || errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause after Release() = %v, want context.Canceled", cause)
	}
	acquire(t.Context(), t, lock.New(client, o))
}

func TestKilledHolderIsReplacedAfterItsTTL(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	o.Retry = 10 * time.Millisecond
	obtained := time.Now()
	if _, err := redislock.Obtain(t.Context(), client, o.Key, o.TTL, nil); err != nil {
		t.Fatal(err)
	}

	wait(t, lock.New(client, o), limit)
	if took := time.Since(obtained); took < o.TTL-clockSlack {
		t.Errorf("replaced after %s, want not before the TTL, %s", took, o.TTL)
	}
}

func TestReleaseAfterParentEnded(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	ctx, cancel := context.WithCancel(t.Context())
	term := acquire(ctx, t, lock.New(client, o))
	cancel()

	if term.Held() {
		t.Error("Held() = true after the parent context ended")
	}
	for range 2 { // a second time is harmless
		if err := term.Release(); err != nil {
			t.Errorf("Release() = %v", err)
		}
	}
	if n := client.Exists(t.Context(), o.Key).Val(); n != 0 {
		t.Error("the key is still there after Release()")
	}
}

func TestDeletedKeyEndsTheTerm(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	lease := lock.New(client, o)
	term := acquire(t.Context(), t, lease)
	client.Del(t.Context(), o.Key)

	wantLost(t, term)
	if err := term.Release(); err != nil {
		t.Errorf("Release() of a lost lease = %v, want nil", err)
	}
	if next := acquire(t.Context(), t, lease); !next.Held() {
		t.Error("Held() = false on the next Term")
	}
}

func TestStolenKeyEndsTheTerm(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	term := acquire(t.Context(), t, lock.New(client, o))
	client.Set(t.Context(), o.Key, "thief", time.Minute)

	wantLost(t, term)
	if err := term.Release(); err != nil {
		t.Errorf("Release() of a stolen lease = %v, want nil", err)
	}
	if got := client.Get(t.Context(), o.Key).Val(); got != "thief" {
		t.Errorf("the other holder's value is %q after Release(), want it untouched", got)
	}
}

func TestKilledRedisEndsTheTerm(t *testing.T) {
	t.Parallel()
	server, o := own(t)
	lease := lock.New(server.Client(), o)
	term := acquire(t.Context(), t, lease)
	server.Kill(t)

	wantLost(t, term)
	if _, err := lease.Acquire(t.Context()); !errors.Is(err, lock.ErrUnreachable) || errors.Is(err, lock.ErrHeld) {
		t.Errorf("Acquire() = %v, want ErrUnreachable", err)
	}
	if err := term.Release(); !errors.Is(err, lock.ErrUnreachable) {
		t.Errorf("Release() = %v, want ErrUnreachable", err)
	}

	server.Restart(t)
	wait(t, lease, limit)
}

func TestPausedRedisEndsTheTerm(t *testing.T) {
	t.Parallel()
	server, o := own(t)
	lease := lock.New(server.Client(), o)
	term := acquire(t.Context(), t, lease)
	server.Pause(t)

	wantLost(t, term)
	server.Resume(t)
	wait(t, lease, limit)
}

// The first call reaches the paused server, which runs it when it goes on: its key must not lock the second one out.
func TestAcquireAfterALostAnswer(t *testing.T) {
	t.Parallel()
	server, o := own(t)
	lease := lock.New(server.Client(), o)
	server.Pause(t)
	if _, err := lease.Acquire(t.Context()); !errors.Is(err, lock.ErrUnreachable) {
		t.Errorf("Acquire() on a paused Redis = %v, want ErrUnreachable", err)
	}
	server.Resume(t)
	acquire(t.Context(), t, lease)
}

func TestAcquireUnusableAnswer(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	client.LPush(t.Context(), o.Key, "not a string")

	_, err := lock.New(client, o).Acquire(t.Context())
	if !errors.Is(err, lock.ErrUnreachable) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("Acquire() on a list = %v, want ErrUnreachable with what Redis said", err)
	}
}

func TestAcquireWithEndedContext(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := lock.New(client, o).Acquire(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrUnreachable) {
		t.Errorf("Acquire() = %v, want context.Canceled", err)
	}
}

// shared returns the shared server and options with a key of this test's own.
func shared(t *testing.T) (*redis.Client, lock.Options) {
	t.Helper()
	return redistest.Shared(t).Client(), lock.Options{Key: redistest.Prefix(t) + ":lease", TTL: realTTL}
}

// own returns a server of this test's own, and options.
func own(t *testing.T) (*redistest.Server, lock.Options) {
	t.Helper()
	return redistest.Start(t), lock.Options{Key: "lease", TTL: realTTL}
}

// wantLost waits for the Term to end and checks that it was lost.
func wantLost(t *testing.T, term *lock.Term) {
	t.Helper()
	select {
	case <-term.Context().Done():
	case <-time.After(limit):
		t.Fatalf("the Term has not ended within %s", limit)
	}
	if cause := context.Cause(term.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("cause = %v, want ErrLost", cause)
	}
	if term.Held() {
		t.Error("Held() = true after the Term ended")
	}
}
