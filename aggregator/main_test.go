package aggregator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	window   = 10 * time.Minute
	keyTTL   = 15 * time.Minute
	countTTL = 12 * time.Minute
)

// env is a prefix of its own on a real Redis, and an Aggregator that works on it.
type env struct {
	t    *testing.T
	raw  redis.UniversalClient // another program
	rdb  redis.UniversalClient // the Aggregator's client, for hooks
	k    keys.Keys
	agg  *Aggregator
	reg  *prometheus.Registry
	log  *zap.Logger
	logs *observer.ObservedLogs
}

func newEnv(t *testing.T, addr string) *env {
	t.Helper()
	return newEnvOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{addr}})
}

func newEnvOn(t *testing.T, o redisclient.Options) *env {
	t.Helper()
	o.Timeout = 5 * time.Second
	e := &env{t: t, k: keys.New(redistest.Prefix(t))}
	e.raw, e.rdb = connect(t, o), connect(t, o)
	core, logs := observer.New(zap.DebugLevel)
	e.logs = logs
	e.log = zap.New(core)
	e.newWorker()
	return e
}

// newWorker replaces the worker by one that remembers nothing.
func (e *env) newWorker() {
	e.reg = prometheus.NewRegistry()
	e.agg = New(e.rdb, Options{
		Keys: e.k, Window: window, KeyTTL: keyTTL, CountTTL: countTTL,
		Holder: "test:1", Logger: e.log, Registerer: e.reg,
	})
}

func connect(t *testing.T, o redisclient.Options) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func shared(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return newEnv(t, redistest.Shared(t).Addr())
}

// now is Redis's clock.
func (e *env) now() int64 {
	e.t.Helper()
	now, err := e.raw.Time(e.t.Context()).Result()
	must(e.t, err)
	return now.Unix()
}

// seed writes a hash as another program would: bare HSETs, no TTL. The values
// are ages in seconds.
func (e *env) seed(video string, ages map[string]int64) {
	e.t.Helper()
	now := e.now()
	values := make(map[string]string, len(ages))
	for viewer, age := range ages {
		values[viewer] = strconv.FormatInt(now-age, 10)
	}
	e.seedValues(video, values)
}

func (e *env) seedValues(video string, values map[string]string) {
	e.t.Helper()
	must(e.t, e.raw.HSet(e.t.Context(), e.k.Online(video), values).Err())
}

// seedMany puts n viewers of one age into a hash.
func (e *env) seedMany(video string, n int, age int64) {
	e.t.Helper()
	at := strconv.FormatInt(e.now()-age, 10)
	for from := 0; from < n; from += 5000 {
		values := make(map[string]string)
		for i := from; i < min(n, from+5000); i++ {
			values["age"+strconv.FormatInt(age, 10)+"-"+strconv.Itoa(i)] = at
		}
		e.seedValues(video, values)
	}
}

func (e *env) pass() Summary {
	e.t.Helper()
	sum, err := e.agg.Pass(e.t.Context())
	must(e.t, err)
	return sum
}

// wantCounts asserts the published count of each video; "" is no count key.
func (e *env) wantCounts(want map[string]string) {
	e.t.Helper()
	for _, video := range slices.Sorted(maps.Keys(want)) {
		got, err := e.raw.Get(e.t.Context(), e.k.Count(video)).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			e.t.Errorf("count of %q: %v", video, err)
		} else if got != want[video] {
			e.t.Errorf("count of %q: got %q, want %q", video, got, want[video])
		}
	}
}

// wantViewers asserts who is in the hash.
func (e *env) wantViewers(video string, want ...string) {
	e.t.Helper()
	got, err := e.raw.HKeys(e.t.Context(), e.k.Online(video)).Result()
	must(e.t, err)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		e.t.Errorf("hash of %q: got %q, want %q", video, got, want)
	}
}

// wantTTL asserts that the key expires within (above, most] from now.
func (e *env) wantTTL(key string, above, most time.Duration) {
	e.t.Helper()
	got, err := e.raw.TTL(e.t.Context(), key).Result()
	must(e.t, err)
	if got <= above || got > most {
		e.t.Errorf("TTL of %s: got %v, want more than %v, at most %v", key, got, above, most)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hook looks at, or interferes with, what the Aggregator sends.
type hook struct {
	before func(ctx context.Context, cmds []redis.Cmder) // in order, each pipeline or command
	after  func(ctx context.Context, cmds []redis.Cmder)
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.call(ctx, h.before, []redis.Cmder{cmd})
		err := next(ctx, cmd)
		h.call(ctx, h.after, []redis.Cmder{cmd})
		if cmd.Err() != nil {
			return cmd.Err()
		}
		return err
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.call(ctx, h.before, cmds)
		err := next(ctx, cmds)
		h.call(ctx, h.after, cmds)
		return err
	}
}

func (h hook) call(ctx context.Context, f func(context.Context, []redis.Cmder), cmds []redis.Cmder) {
	if f != nil {
		f(ctx, cmds)
	}
}

// names reports whether cmd is of that name and, unless key is "", on that key.
func names(cmd redis.Cmder, name, key string) bool {
	if cmd.Name() != name {
		return false
	}
	for _, arg := range cmd.Args() {
		if s, ok := arg.(string); ok && s == key {
			return true
		}
	}
	return key == ""
}
