package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/lock"
)

func TestLostAnswerDoesNotLockUsOut(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		l.via = func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
			cmd := send()
			if n == 0 {
				return failed(errCut)
			}
			return cmd
		}
		lease := newLease(l)
		if _, err := lease.Acquire(t.Context()); !errors.Is(err, lock.ErrUnreachable) || !errors.Is(err, errCut) {
			t.Errorf("Acquire() = %v, want ErrUnreachable with its reason", err)
		}
		pass(t, acquire(t.Context(), t, lease), 5*ttl)
	})
}

func TestAcquireRedisInTrouble(t *testing.T) {
	for _, answer := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"NOAUTH Authentication required.",
		"CLUSTERDOWN The cluster is down",
	} {
		t.Run(strings.Fields(answer)[0], func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *link, m *miniredis.Miniredis) {
				m.SetError(answer)
				_, err := newLease(l).Acquire(t.Context())
				if !errors.Is(err, lock.ErrUnreachable) || !strings.Contains(err.Error(), answer) {
					t.Errorf("Acquire() = %v, want ErrUnreachable with what Redis said", err)
				}
			})
		})
	}
}

func TestAcquireKeepsItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		l.via = deaf
		lease := lock.New(l, lock.Options{Key: lockedKey, TTL: ttl, Timeout: time.Hour})
		_, err := lease.Acquire(t.Context())
		if !errors.Is(err, lock.ErrUnreachable) {
			t.Errorf("Acquire() = %v, want ErrUnreachable", err)
		}
		if took := time.Since(l.began); took != ttl/3 {
			t.Errorf("Acquire() took %s, want a third of the TTL", took)
		}
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
		defer cancel()
		l.via = deaf
		lease := lock.New(l, lock.Options{Key: lockedKey, TTL: ttl})
		if _, err := lease.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lock.ErrUnreachable) {
			t.Errorf("Acquire() = %v, want the bare context.DeadlineExceeded", err)
		}
	})
}

func TestWaitReportsChangesOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		l.via = func(_ context.Context, n int, send func() *redis.Cmd) *redis.Cmd {
			switch n {
			case 0, 1, 5, 6:
				return failed(redis.Nil) // held by another
			case 2, 3, 4:
				return failed(errCut)
			default:
				return send()
			}
		}
		var got []string
		term, err := newLease(l).Wait(t.Context(), func(err error) { got = append(got, err.Error()) })
		if err != nil {
			t.Fatalf("Wait() = %v, want the lease", err)
		}
		defer func() { _ = term.Release() }()

		unreachable := lock.ErrUnreachable.Error() + ": " + errCut.Error()
		want := []string{lock.ErrHeld.Error(), unreachable, lock.ErrHeld.Error()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		if took := time.Since(l.began); took != 7*500*time.Millisecond {
			t.Errorf("Wait() took %s, want seven pauses of half a second", took)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, m *miniredis.Miniredis) {
		if err := m.Set(lockedKey, "another"); err != nil {
			t.Fatal(err)
		}
		const end = 10*ttl + time.Millisecond // in a pause
		ctx, cancel := context.WithTimeout(t.Context(), end)
		defer cancel()
		if _, err := newLease(l).Wait(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait() = %v, want context.DeadlineExceeded", err)
		}
		if took := time.Since(l.began); took != end {
			t.Errorf("Wait() took %s, want %s", took, end)
		}
	})
}

func TestWaitTakesOverWithinASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		o := lock.Options{Key: lockedKey, TTL: 15 * time.Second}
		holder := acquire(t.Context(), t, lock.New(l, o))
		const held = 10*time.Minute + time.Millisecond
		release := time.AfterFunc(held, func() { _ = holder.Release() })
		defer release.Stop()

		next, err := lock.New(l, o).Wait(t.Context(), nil)
		if err != nil {
			t.Fatalf("Wait() = %v, want the lease", err)
		}
		defer func() { _ = next.Release() }()
		if took := time.Since(l.began); took < held || took > held+time.Second {
			t.Errorf("took over after %s, want within a second of the release at %s", took, held)
		}
	})
}

func TestWaitReplacesADeadHolderAfterItsTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, l *link, _ *miniredis.Miniredis) {
		ctx, kill := context.WithCancel(t.Context())
		acquire(ctx, t, newLease(l))
		kill()

		next, err := newLease(l).Wait(t.Context(), nil)
		if err != nil {
			t.Fatalf("Wait() = %v, want the lease", err)
		}
		defer func() { _ = next.Release() }()
		if took := time.Since(l.began); took < ttl || took > ttl+500*time.Millisecond {
			t.Errorf("replaced after %s, want at the first try after %s", took, ttl)
		}
	})
}
