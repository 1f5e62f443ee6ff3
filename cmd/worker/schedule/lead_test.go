package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"headcount/aggregator"
	"headcount/lock"
)

const (
	lostMessage    = "the lease was lost"
	standsBy       = "standing by: another worker holds the lease"
	leads          = "leading: this worker holds the lease and makes the passes"
	cannotAsk      = "cannot ask for the lease"
	panicked       = "a pass panicked; the next one runs as scheduled"
	released       = "the lease is released"
	releasedFailed = "the lease could not be released; it expires by itself"
)

func TestLongPassKeepsOthersOut(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var cut error
		a := b.start(t, time.Second, func(ctx context.Context, _ int) error {
			defer func() { cut = ctx.Err() }()
			return lasting(3*leaseTTL)(ctx, 0)
		})
		a.waitFor(t, leads)
		standby := b.start(t, time.Second, lasting(0))

		b.advance(3*leaseTTL + time.Second/2)
		if cut != nil {
			t.Errorf("the long pass was cut short: %v", cut)
		}
		if got, want := len(a.starts), 1; got != want {
			t.Errorf("the holder started %d passes, want %d", got, want)
		}
		if len(standby.starts) > 0 {
			t.Errorf("the standby started passes at %v, want none", standby.starts)
		}
		if got := standby.logged(standsBy); len(got) != 1 {
			t.Errorf("standing by was logged %d times, want once", len(got))
		}
	})
}

func TestLeaseDeletedMidPass(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var cause, next error
		w := b.start(t, time.Hour, func(ctx context.Context, n int) error {
			if n == 2 {
				next = ctx.Err()
				return nil
			}
			b.redis.Del(leaseKey)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return fmt.Errorf("%w: %w", aggregator.ErrCutShort, cause)
		})
		b.advance(2 * leaseTTL)

		if !errors.Is(cause, lock.ErrLost) {
			t.Errorf("the pass ended with %v, want %v", cause, lock.ErrLost)
		}
		if diff := cmp.Diff([]zapcore.Level{zapcore.WarnLevel}, w.logged(lostMessage)); diff != "" {
			t.Errorf("the loss is not one warning (-want +got):\n%s", diff)
		}
		if len(w.starts) != 2 || next != nil {
			t.Fatalf("%d passes, the second with a context that says %v; want 2, with nil", len(w.starts), next)
		}
		if took := w.starts[1] - w.starts[0]; took > leaseTTL {
			t.Errorf("the next lease's pass came after %s, want within %s", took, leaseTTL)
		}
	})
}

func TestStolenLease(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(t, time.Hour, func(ctx context.Context, _ int) error {
			if err := b.redis.Set(leaseKey, "another's token"); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return aggregator.ErrCutShort
		})
		b.advance(2 * leaseTTL)

		if got := w.messages(); !slices.Contains(got, lostMessage) || !slices.Contains(got, standsBy) {
			t.Errorf("logged %q, want the loss and that it stands by", got)
		}
		if state, err := w.leaseState(t.Context()); state != "standby" || err != nil {
			t.Errorf("leaseState() = %q, %v; a standby is ready", state, err)
		}
		if got, err := b.redis.Get(leaseKey); err != nil || got != "another's token" {
			t.Errorf("the thief's lease is %q (%v), want it untouched", got, err)
		}
	})
}

func TestStopMidPass(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		const winding = 100 * time.Millisecond // what a pass needs to stop
		w := b.start(t, time.Second, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			<-time.After(winding)
			return aggregator.ErrCutShort
		})
		w.waitFor(t, leads)
		standby := b.start(t, time.Second, lasting(0))
		standby.waitFor(t, standsBy)

		stopped := b.since()
		w.stop()
		<-w.ended
		if took := b.since() - stopped; took != winding {
			t.Errorf("stopping took %s, want the %s that the pass needs", took, winding)
		}
		if b.redis.Exists(leaseKey) {
			t.Error("the lease is still there")
		}
		b.advance(stopped + time.Second)
		if len(standby.starts) == 0 {
			t.Errorf("the standby made no pass within a second; it logged %q", standby.messages())
		}
		if got := w.messages(); got[len(got)-1] != released {
			t.Errorf("logged %q, want %q last", got, released)
		}
	})
}

func TestStopWithRedisDown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(t, time.Hour, lasting(0))
		w.waitFor(t, leads)
		b.redis.SetError("LOADING Redis is loading the dataset in memory")
		w.stop()
		<-w.ended
		got := w.messages()
		if got[len(got)-1] != releasedFailed {
			t.Errorf("logged %q, want %q last", got, releasedFailed)
		}
	})
}

func TestPanicInOnePass(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		const interval = time.Minute
		w := b.start(t, interval, func(_ context.Context, n int) error {
			if n == 1 {
				panicInPass()
			}
			return nil
		})
		b.advance(2*interval + time.Second)

		if diff := cmp.Diff([]time.Duration{0, interval, 2 * interval}, w.starts); diff != "" {
			t.Errorf("passes did not go on (-want +got):\n%s", diff)
		}
		entries := w.logs.FilterMessage(panicked).All()
		if len(entries) != 1 || entries[0].Level != zapcore.ErrorLevel {
			t.Fatalf("logged %v, want one error", entries)
		}
		fields := entries[0].ContextMap()
		if fields["panic"] != "a fault in the pass" {
			t.Errorf("panic = %v, want what was thrown", fields["panic"])
		}
		if stack, _ := fields["stack"].(string); !strings.Contains(stack, "panicInPass") {
			t.Errorf("the stack does not show where it happened:\n%s", stack)
		}
	})
}

func panicInPass() { panic("a fault in the pass") }

func TestRedisDownIsNotHeldByAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.redis.SetError("LOADING Redis is loading the dataset in memory")
		w := b.start(t, time.Hour, lasting(0))
		b.advance(10 * retry)
		if diff := cmp.Diff([]string{cannotAsk}, w.messages()); diff != "" {
			t.Errorf("log while Redis is down (-want +got):\n%s", diff)
		}
		if got := w.logged(cannotAsk); len(got) != 1 || got[0] != zapcore.WarnLevel {
			t.Errorf("logged at %v, want one warning", got)
		}
		cause, _ := w.logs.All()[0].ContextMap()["error"].(string)
		if !strings.Contains(cause, "LOADING") {
			t.Errorf("error = %q, want Redis's reason", cause)
		}

		b.redis.SetError("")
		b.advance(11*retry + time.Millisecond)
		if len(w.starts) != 1 {
			t.Errorf("%d passes after Redis came back, want 1", len(w.starts))
		}
	})
}

func TestRefreshesOutliveAShortOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(t, time.Second, lasting(100*time.Millisecond))
		b.advance(leaseTTL)
		b.redis.SetError("LOADING Redis is loading the dataset in memory")
		b.advance(leaseTTL + leaseTTL/3)
		b.redis.SetError("")
		b.advance(4 * leaseTTL)
		if got := w.logged(lostMessage); len(got) > 0 {
			t.Errorf("the lease was lost %d times in an outage of a third of its TTL", len(got))
		}
		if got := w.logged(leads); len(got) != 1 {
			t.Errorf("it began to lead %d times, want once", len(got))
		}
	})
}
