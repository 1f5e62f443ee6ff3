package schedule

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
)

// fillUp makes Redis refuse what needs memory, as one at its maxmemory does, until the test calls free.
func (b *bubble) fillUp() (free func()) {
	hook := &outOfMemory{}
	hook.full.Store(true)
	b.client.AddHook(hook)
	return func() { hook.full.Store(false) }
}

// outOfMemory refuses scripts that are given a value, as that which obtains a lease is.
type outOfMemory struct{ full atomic.Bool }

func (h *outOfMemory) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *outOfMemory) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *outOfMemory) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		const withoutValues = 4 // EVALSHA, the script, the number of keys, and the key
		if h.full.Load() && len(cmd.Args()) > withoutValues {
			err := errors.New("OOM command not allowed when used memory > 'maxmemory'")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func TestFullRedisIsPassedWithoutTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		free := b.fillUp()
		const interval = 10 * time.Second
		w := b.start(t, interval, func(_ context.Context, n int) error {
			switch n {
			case 2:
				panicInPass()
			case 3:
				free()
			}
			return nil
		})
		b.advance(2*interval + time.Second)
		if w.leading.Load() || b.redis.Exists(leaseKey) {
			t.Error("it leads, without a lease")
		}
		b.advance(3*interval + time.Second)
		if got := testutil.ToFloat64(w.alone); got != 3 {
			t.Errorf("passes without the lease = %v, want 3", got)
		}
		// At once, and every interval; with the fourth it leads again.
		want := []time.Duration{0, interval, 2 * interval, 3 * interval}
		if diff := cmp.Diff(want, w.starts); diff != "" {
			t.Errorf("passes started (-want +got):\n%s", diff)
		}
		if got := len(w.logged(fullMessage)); got != 1 {
			t.Errorf("logged %d times that Redis is full, want once", got)
		}
		if got := len(w.logged(panicked)); got != 1 {
			t.Errorf("logged %d panics, want 1", got)
		}
		if !w.leading.Load() {
			t.Error("it does not lead although Redis has memory again")
		}
	})
}

func TestStopWhileRedisIsFull(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.fillUp()
		w := b.start(t, time.Hour, lasting(time.Minute))
		b.advance(time.Second)
		w.stop()
		b.advance(time.Second + time.Millisecond)
		select {
		case <-w.ended:
		default:
			t.Error("it goes on although it was told to stop")
		}
	})
}
