package lookup_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/lookup"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	countTTL = 12 * time.Minute

	// patience is for readings that are to succeed however slow the machine is.
	patience = 30 * time.Second
)

// fixture is a Lookup of a test's own with the server that it reads from.
type fixture struct {
	*lookup.Lookup
	rdb    redis.UniversalClient // the Lookup's
	sent   *sentCommands         // through rdb
	db     redis.UniversalClient // the test's
	prefix string
	reg    *prometheus.Registry
}

// newFixture returns a Lookup on the shared server. The test gives the options
// that matter to it; newCounter, which may be nil, makes the Counter.
func newFixture(t *testing.T, o lookup.Options, newCounter func(redis.UniversalClient, keys.Keys) lookup.Counter) *fixture {
	t.Helper()
	s := redistest.Shared(t)
	return newFixtureOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{s.Addr()}}, s.Client(), o, newCounter)
}

// newFixtureOn is newFixture on another Redis, of which db is a client.
func newFixtureOn(t *testing.T, where redisclient.Options, db redis.UniversalClient, o lookup.Options, newCounter func(redis.UniversalClient, keys.Keys) lookup.Counter) *fixture {
	t.Helper()
	where.Timeout = patience
	rdb, err := redisclient.New(where)
	if err != nil {
		t.Fatalf("redisclient.New: %v", err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	f := &fixture{rdb: rdb, sent: &sentCommands{}, db: db, prefix: redistest.Prefix(t), reg: prometheus.NewRegistry()}
	rdb.AddHook(f.sent)
	o.Keys, o.Registerer, o.Timeout = keys.New(f.prefix), f.reg, patience
	if o.CountTTL == 0 {
		o.CountTTL = countTTL
	}
	if newCounter != nil {
		o.Counter = newCounter(rdb, o.Keys)
	}
	if f.Lookup, err = lookup.New(rdb, o); err != nil {
		t.Fatalf("lookup.New: %v", err)
	}
	t.Cleanup(f.Close)
	return f
}

// The names are spelled here once more, as other programs spell them.
func (f *fixture) online(videoID string) string { return f.prefix + ":online:" + videoID }
func (f *fixture) count(videoID string) string  { return f.prefix + ":online:count:" + videoID }

func (f *fixture) setCount(t *testing.T, videoID string, value any) {
	t.Helper()
	if err := f.db.Set(t.Context(), f.count(videoID), value, time.Minute).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
}

// finishPass writes down that a pass has finished so long ago, and returns when.
func (f *fixture) finishPass(t *testing.T, ago time.Duration) time.Time {
	t.Helper()
	at := f.now(t).Add(-ago).Truncate(time.Second)
	if err := f.db.HSet(t.Context(), f.prefix+":worker:last_pass", "finished_at", at.Unix()).Err(); err != nil {
		t.Fatalf("HSET: %v", err)
	}
	return at
}

// now is Redis's time.
func (f *fixture) now(t *testing.T) time.Time {
	t.Helper()
	now, err := f.db.Time(t.Context()).Result()
	if err != nil {
		t.Fatalf("TIME: %v", err)
	}
	return now
}

func (f *fixture) wantKeys(t *testing.T, want ...string) {
	t.Helper()
	got, err := f.db.Keys(t.Context(), f.prefix+":*").Result()
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("keys = %q, %v, want %q", got, err, want)
	}
}

// source is what Lookup and every fixture around one have.
type source interface {
	Viewers(ctx context.Context, videoID string) (int64, time.Time, error)
}

// wantViewers looks a video up, checks its number and returns as of when.
func wantViewers(t *testing.T, s source, videoID string, want int64) (asOf time.Time) {
	t.Helper()
	got, asOf, err := s.Viewers(t.Context(), videoID)
	if err != nil || got != want {
		t.Errorf("Viewers(%q) = %d, %v, want %d", videoID, got, err, want)
	}
	return asOf
}

// wantOutcomes checks how many lookups had which outcome; the others had none.
func wantOutcomes(t *testing.T, reg prometheus.Gatherer, want map[string]int) {
	t.Helper()
	lookups := 0
	for _, n := range want {
		lookups += n
	}
	wantOutcomesOf(t, reg, lookups, want)
}

// wantOutcomesOf is wantOutcomes where some calls looked up several videos.
func wantOutcomesOf(t *testing.T, reg prometheus.Gatherer, calls int, want map[string]int) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatalf("Gather: %v", err)
	}
	got, observed := make(map[string]int), 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			switch family.GetName() {
			case "headcount_lookups_total":
				got[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
			case "headcount_lookup_duration_seconds":
				observed = int(m.GetHistogram().GetSampleCount())
			}
		}
	}
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	for outcome, n := range got {
		if n != want[outcome] {
			t.Errorf("lookups with outcome %s = %d, want %d", outcome, n, want[outcome])
		}
	}
	if len(got) != len(want) || observed != calls {
		t.Errorf("outcomes = %v, durations = %d, want %v and %d durations", got, observed, want, calls)
	}
}

// sentCommands is a hook that counts the commands sent, and the round trips.
type sentCommands struct {
	commands, trips atomic.Int64

	mu   sync.Mutex
	read []string // the keys of each MGET
}

// takeRead returns the keys that were read by MGET since it was last called.
func (s *sentCommands) takeRead() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	read := s.read
	s.read = nil
	return read
}

func (s *sentCommands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sentCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.trips.Add(1)
		s.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (s *sentCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.trips.Add(1)
		s.commands.Add(int64(len(cmds)))
		s.mu.Lock()
		for _, cmd := range cmds {
			for _, key := range cmd.Args()[1:] {
				if cmd.Name() == "mget" {
					s.read = append(s.read, key.(string))
				}
			}
		}
		s.mu.Unlock()
		return next(ctx, cmds)
	}
}
