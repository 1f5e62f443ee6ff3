package aggregator

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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
	rdb  redis.UniversalClient // the Aggregator's client
	k    keys.Keys
	agg  *Aggregator
	reg  *prometheus.Registry
	log  *zap.Logger
	logs *observer.ObservedLogs
	hooks
}

func newEnv(t *testing.T, addr string) *env {
	t.Helper()
	return newEnvOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{addr}})
}

func newEnvOn(t *testing.T, o redisclient.Options) *env {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	e := &env{t: t, k: keys.New(redistest.Prefix(t))}
	e.rdb = connect(t, o)
	o.Timeout = 5 * time.Second
	e.raw = connect(t, o)
	e.installOn(e.rdb)
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

// onEach runs a test on a single server and on a cluster of three masters. A
// video's hash and its count are mostly on two different ones.
func onEach(t *testing.T, test func(t *testing.T, e *env)) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		test(t, newEnv(t, redistest.Shared(t).Addr()))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, newClusterEnv(t, redistest.SharedCluster(t)))
	})
}

func newClusterEnv(t *testing.T, c *redistest.Cluster) *env {
	t.Helper()
	return newEnvOn(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
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

// seedVideos is seed for the videos "0", "1", … of n.
func (e *env) seedVideos(n int, ages map[string]int64) {
	e.t.Helper()
	now := e.now()
	pipe := e.raw.Pipeline()
	for i := range n {
		for viewer, age := range ages {
			pipe.HSet(e.t.Context(), e.k.Online(strconv.Itoa(i)), viewer, now-age)
		}
	}
	_, err := pipe.Exec(e.t.Context())
	must(e.t, err)
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
	videos := slices.Sorted(maps.Keys(want))
	pipe := e.raw.Pipeline()
	got := make([]*redis.StringCmd, len(videos))
	for i, video := range videos {
		got[i] = pipe.Get(e.t.Context(), e.k.Count(video))
	}
	_, _ = pipe.Exec(e.t.Context()) // each command has its own error
	for i, video := range videos {
		if err := got[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			e.t.Errorf("count of %q: %v", video, err)
		} else if got[i].Val() != want[video] {
			e.t.Errorf("count of %q: got %q, want %q", video, got[i].Val(), want[video])
		}
	}
}

// wantEach asserts one count of all the videos of seedVideos.
func (e *env) wantEach(n int, count string) {
	e.t.Helper()
	want := make(map[string]string, n)
	for i := range n {
		want[strconv.Itoa(i)] = count
	}
	e.wantCounts(want)
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

// wantPasses asserts that the worker's metrics tell of one pass, with this
// outcome, and that none is the last complete one.
func (e *env) wantPasses(outcome string) {
	e.t.Helper()
	for _, o := range []string{"complete", "partial", "cut_short"} {
		want := 0.0
		if o == outcome {
			want = 1
		}
		if got := testutil.ToFloat64(e.agg.metrics.passes.WithLabelValues(o)); got != want {
			e.t.Errorf("passes with outcome %s: got %v, want %v", o, got, want)
		}
	}
	if got := testutil.ToFloat64(e.agg.metrics.lastComplete); got != 0 {
		e.t.Errorf("last complete pass: got %v, want none", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
