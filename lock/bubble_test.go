package lock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"headcount/lock"
)

// In virtual time moments are exact. All of these tests use this TTL and what follows from it.
const (
	ttl       = 3 * time.Second
	cadence   = ttl / 3
	retry     = ttl / 10
	trust     = ttl - ttl/10
	lockedKey = "lease"
)

var errCut = errors.New("the network is cut")

// route handles the nth call, counted from 0: it may send it, delay it or lose it.
type route func(ctx context.Context, n int, send func() *redis.Cmd) *redis.Cmd

// link is the way from a lease to its Redis. Each call goes through via, when that is not nil.
type link struct {
	redis.Scripter
	via   route
	began time.Time

	mu    sync.Mutex
	calls []time.Duration // when each call was made
}

// EvalSha is the only call a lease makes once Redis knows the scripts.
func (l *link) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	send := func() *redis.Cmd { return l.Scripter.EvalSha(ctx, sha, keys, args...) }
	n := l.count()
	if l.via == nil {
		return send()
	}
	return l.via(ctx, n, send)
}

// count takes note of a call and returns how many came before it.
func (l *link) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, time.Since(l.began))
	return len(l.calls) - 1
}

// made returns when the calls so far were made.
func (l *link) made() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// failed is the outcome of a call that got no answer.
func failed(err error) *redis.Cmd {
	cmd := &redis.Cmd{}
	cmd.SetErr(err)
	return cmd
}

// cutFrom is a route on which calls fail at once from the nth on.
func cutFrom(first int) route {
	return func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
		if n >= first {
			return failed(errCut)
		}
		return send()
	}
}

// deaf is a route on which no call is answered before its deadline.
func deaf(ctx context.Context, _ int, _ func() *redis.Cmd) *redis.Cmd {
	<-ctx.Done()
	return failed(ctx.Err())
}

// inBubble runs test in virtual time, with a Redis whose clock is virtual too.
func inBubble(t *testing.T, test func(t *testing.T, l *link, m *miniredis.Miniredis)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		t.Cleanup(m.Close)
		client := redis.NewClient(&redis.Options{
			Dialer:                func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
			ContextTimeoutEnabled: true,
			MaxRetries:            -1,
			// It would look up a host name, on goroutines outside the bubble.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = client.Close() })
		warm(t, client)
		test(t, &link{Scripter: client, began: time.Now()}, m)
	})
}

// warm makes Redis know the scripts, so that each later call is exactly one EVALSHA.
func warm(t *testing.T, client *redis.Client) {
	t.Helper()
	l, err := redislock.Obtain(t.Context(), client, "warm", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Refresh(t.Context(), time.Minute, nil), l.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func newLease(l *link) *lock.Lease { return lock.New(l, lock.Options{Key: lockedKey, TTL: ttl}) }

// pass lets virtual time pass and ends the test if the Term ends meanwhile.
func pass(t *testing.T, term *lock.Term, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-term.Context().Done():
		t.Fatalf("the Term ended within %s: %v", d, context.Cause(term.Context()))
	}
	if !term.Held() {
		t.Fatalf("Held() = false after %s", d)
	}
}
