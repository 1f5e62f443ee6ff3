package lookup_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"headcount/internal/keys"
	"headcount/lookup"
)

// virtual is a Lookup whose time is a test's to move: it runs in a bubble of
// testing/synctest, on a Redis that may be cut off or made to stall.
type virtual struct {
	*lookup.Lookup
	redis *miniredis.Miniredis
	reg   *prometheus.Registry

	down, stalled atomic.Bool
	mu            sync.Mutex
	conns         []net.Conn
}

const (
	cacheFor = time.Second
	timeout  = 2 * time.Second
)

// inBubble runs test with a virtual Lookup.
func inBubble(t *testing.T, counter lookup.Counter, test func(*testing.T, *virtual)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &virtual{redis: miniredis.NewMiniRedis(), reg: prometheus.NewRegistry()}
		rdb := redis.NewClient(&redis.Options{
			Addr:                     "127.0.0.1:6379", // or the library resolves its default
			Dialer:                   v.dial,
			DialerRetries:            1,
			MaxRetries:               -1,
			ContextTimeoutEnabled:    true,
			DisableIdentity:          true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		rdb.AddHook(v)
		defer v.redis.Close()
		defer func() { _ = rdb.Close() }()
		var err error
		v.Lookup, err = lookup.New(rdb, lookup.Options{
			Keys:       keys.New("video"),
			CountTTL:   countTTL,
			Cache:      cacheFor,
			Counter:    counter,
			Timeout:    timeout,
			Registerer: v.reg,
		})
		if err != nil {
			t.Fatalf("lookup.New: %v", err)
		}
		defer v.Close()
		test(t, v)
	})
}

var errDown = errors.New("the network is down")

func (v *virtual) dial(context.Context, string, string) (net.Conn, error) {
	if v.down.Load() {
		return nil, errDown
	}
	conn, err := v.redis.Dial()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conns = append(v.conns, conn)
	return conn, err
}

// cut ends all connections and refuses new ones.
func (v *virtual) cut() {
	v.down.Store(true)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, conn := range v.conns {
		_ = conn.Close()
	}
	v.conns = nil
}

func (v *virtual) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (v *virtual) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook stands for a server that takes commands and never answers.
func (v *virtual) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !v.stalled.Load() {
			return next(ctx, cmds)
		}
		<-ctx.Done()
		for _, cmd := range cmds {
			cmd.SetErr(ctx.Err())
		}
		return ctx.Err()
	}
}

// pass publishes a count as a pass does that finishes now, and returns when.
func (v *virtual) pass(t *testing.T, viewers int) time.Time {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	if err := v.redis.Set("video:online:count:10001", strconv.Itoa(viewers)); err != nil {
		t.Fatalf("SET: %v", err)
	}
	v.redis.HSet("video:worker:last_pass", "finished_at", strconv.FormatInt(now.Unix(), 10))
	return now
}

// after moves the time.
func after(d time.Duration) { <-time.After(d) }
