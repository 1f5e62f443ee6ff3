package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/lock"
)

func TestHeldForFiftyTTLs(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		l.via = func(_ context.Context, _ int, send func() *redis.Cmd) *redis.Cmd {
			defer func() { <-time.After(cadence / 5) }() // slow answers do not shift the cadence
			return send()
		}
		term := acquire(t.Context(), t, newLease(l))
		pass(t, term, 50*ttl)

		var want []time.Duration
		for at := time.Duration(0); at <= 50*ttl; at += cadence {
			want = append(want, at)
		}
		if diff := cmp.Diff(want, l.made()); diff != "" {
			t.Errorf("calls are not a third of the TTL apart (-want +got):\n%s", diff)
		}
		if _, err := newLease(l).Acquire(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("another's Acquire() = %v, want ErrHeld", err)
		}
	})
}

func TestTrustRunsOut(t *testing.T) {
	const delay = 200 * time.Millisecond
	tests := []struct {
		name string
		via  route
		want time.Duration // when the Term ends, from before Acquire
	}{
		{
			name: "refreshes fail at once",
			via:  cutFrom(1),
			want: trust,
		},
		{
			name: "refreshes fail after one that succeeded",
			via:  cutFrom(2),
			want: cadence + trust,
		},
		{
			name: "the call that refreshed took its time",
			via: func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
				switch n {
				case 0:
					return send()
				case 1:
					defer func() { <-time.After(delay) }()
					return send()
				default:
					return failed(errCut)
				}
			},
			want: cadence + trust,
		},
		{
			name: "the call that obtained took its time",
			via: func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
				if n == 0 {
					defer func() { <-time.After(delay) }()
					return send()
				}
				return failed(errCut)
			},
			want: trust,
		},
		{
			name: "the refresh hangs, deaf to its deadline",
			via: func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
				if n > 0 {
					<-time.After(10 * ttl)
					return failed(errCut)
				}
				return send()
			},
			want: trust,
		},
		{
			name: "the refresh succeeds after the trust has run out",
			via: func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
				if n > 0 {
					defer func() { <-time.After(ttl) }()
				}
				return send()
			},
			want: trust,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
				l.via = tt.via
				term := acquire(t.Context(), t, newLease(l))
				pass(t, term, tt.want-time.Since(l.began)-1)

				select {
				case <-term.Context().Done():
				case <-time.After(ttl):
				}
				if got := time.Since(l.began); got != tt.want {
					t.Errorf("the Term ended after %s, want %s", got, tt.want)
				}
				if cause := context.Cause(term.Context()); !errors.Is(cause, lock.ErrLost) {
					t.Errorf("cause = %v, want ErrLost", cause)
				}
				<-time.After(20 * ttl) // whatever answers come in late
				if term.Held() {
					t.Error("Held() = true on a Term that ended")
				}
			})
		})
	}
}

func TestLossSaysWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		l.via = cutFrom(1)
		term := acquire(t.Context(), t, newLease(l))
		<-term.Context().Done()
		if cause := context.Cause(term.Context()); !errors.Is(cause, errCut) {
			t.Errorf("cause = %v, want it to wrap what the last refresh said", cause)
		}
	})
}

func TestFailedRefreshIsRepeatedSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		l.via = func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
			if n == 1 || n == 2 {
				return failed(errCut)
			}
			return send()
		}
		term := acquire(t.Context(), t, newLease(l))
		pass(t, term, ttl+cadence)

		repeated := cadence + 2*retry
		want := []time.Duration{0, cadence, cadence + retry, repeated, repeated + cadence, repeated + 2*cadence}
		if diff := cmp.Diff(want, l.made()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestUnansweredRefreshIsGivenUpAndRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		l.via = func(ctx context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
			if n == 1 {
				return deaf(ctx, n, send)
			}
			return send()
		}
		term := acquire(t.Context(), t, newLease(l))
		pass(t, term, ttl)

		const timeout = ttl / 3
		want := []time.Duration{0, cadence, cadence + timeout + retry}
		if diff := cmp.Diff(want, l.made()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestDeletedKeyIsSeenAtTheNextRefresh(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, m *miniredis.Miniredis) {
		term := acquire(t.Context(), t, newLease(l))
		m.Del(lockedKey)
		<-term.Context().Done()
		if got := time.Since(l.began); got != cadence {
			t.Errorf("the Term ended after %s, want %s", got, cadence)
		}
	})
}

func TestEndedParentStopsRefreshing(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, m *miniredis.Miniredis) {
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		term := acquire(ctx, t, newLease(l))
		pass(t, term, cadence)
		cancel(cause)

		if got := context.Cause(term.Context()); !errors.Is(got, cause) {
			t.Errorf("cause = %v, want the parent's", got)
		}
		<-time.After(ttl + time.Millisecond)
		if m.Exists(lockedKey) {
			t.Error("the key is still there a TTL after the parent context ended")
		}
	})
}
