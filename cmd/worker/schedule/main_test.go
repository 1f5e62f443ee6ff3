package schedule

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"headcount/aggregator"
	"headcount/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	leaseKey = "video:worker:lease"
	leaseTTL = 3 * time.Second
	// retry is how often a standby asks for the lease.
	retry = leaseTTL / 6
)

// inBubble runs test in virtual time, with a Redis whose clock is virtual too:
// hours pass in milliseconds, and moments are exact.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{redis: miniredis.NewMiniRedis(), began: time.Now()}
		b.redis.ClockTTL(true)
		t.Cleanup(b.redis.Close)
		b.client = redis.NewClient(&redis.Options{
			Dialer:                func(context.Context, string, string) (net.Conn, error) { return b.redis.Dial() },
			ContextTimeoutEnabled: true,
			MaxRetries:            -1,
			// It would look up a host name, on goroutines outside the bubble.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = b.client.Close() })
		b.loadScripts(t)
		test(t, b)
	})
}

type bubble struct {
	redis  *miniredis.Miniredis
	client *redis.Client
	began  time.Time
}

// loadScripts makes Redis know the lease's scripts: a call that has to send the
// text too takes two round trips.
func (b *bubble) loadScripts(t *testing.T) {
	t.Helper()
	l, err := redislock.Obtain(t.Context(), b.client, "warm", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// since is how much virtual time has passed.
func (b *bubble) since() time.Duration { return time.Since(b.began) }

// testWorker is a worker that leads, or stands by, until it is stopped.
type testWorker struct {
	*worker
	logs  *observer.ObservedLogs
	stop  context.CancelFunc
	ended chan struct{}

	starts  []time.Duration // when its passes started, since the bubble began
	running bool
}

// start starts a worker that makes passes by calling pass with their number,
// from 1 on.
func (b *bubble) start(t *testing.T, interval time.Duration, pass func(ctx context.Context, n int) error) *testWorker {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	ctx, stop := context.WithCancel(t.Context())
	w := &testWorker{logs: logs, stop: stop, ended: make(chan struct{})}
	lease := lock.New(b.client, lock.Options{Key: leaseKey, TTL: leaseTTL, Retry: retry})
	log := zap.New(core)
	w.worker = newWorker(log, lease, []counted{{log, passFunc(func(ctx context.Context) error {
		if w.running {
			t.Error("two passes at once in one worker")
		}
		w.running = true
		defer func() { w.running = false }()
		w.starts = append(w.starts, b.since())
		return pass(ctx, len(w.starts))
	})}}, interval, nil)
	go func() {
		defer close(w.ended)
		if err := w.lead(ctx); err != nil {
			t.Errorf("lead() = %v, want nil", err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-w.ended
	})
	return w
}

// logged are the levels of the entries with this message.
func (w *testWorker) logged(message string) (levels []zapcore.Level) {
	for _, entry := range w.logs.FilterMessage(message).All() {
		levels = append(levels, entry.Level)
	}
	return levels
}

// waitFor lets virtual time pass until the worker has logged this message.
func (w *testWorker) waitFor(t *testing.T, message string) {
	t.Helper()
	for range 1000 {
		synctest.Wait()
		if len(w.logged(message)) > 0 {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("not logged: %q; logged: %v", message, w.messages())
}

func (w *testWorker) messages() (all []string) {
	for _, entry := range w.logs.All() {
		all = append(all, entry.Message)
	}
	return slices.Compact(all)
}

type passFunc func(ctx context.Context) error

func (f passFunc) PassWhile(ctx context.Context, _ func() bool) (aggregator.Summary, error) {
	return aggregator.Summary{}, f(ctx)
}

// lasting is a pass that takes d, or less when ctx ends.
func lasting(d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return aggregator.ErrCutShort
		}
	}
}

// advance lets virtual time pass until d since the bubble began, and everything
// that is due by then happen.
func (b *bubble) advance(d time.Duration) {
	<-time.After(d - b.since())
	synctest.Wait()
}
