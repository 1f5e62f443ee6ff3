package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/internal/keys"
	"headcount/lookup"
)

const window = 10 * time.Minute

// countedCounter is a real aggregator, and how often it was asked.
type countedCounter struct {
	*aggregator.Aggregator
	calls atomic.Int64
}

func (c *countedCounter) Count(ctx context.Context, videoID string) (int64, time.Time, error) {
	c.calls.Add(1)
	return c.Aggregator.Count(ctx, videoID)
}

// newComputing returns a Lookup that counts by an aggregator.
func newComputing(t *testing.T, cache time.Duration) (*fixture, *countedCounter) {
	t.Helper()
	c := &countedCounter{}
	f := newFixture(t, lookup.Options{Cache: cache}, func(rdb redis.UniversalClient, k keys.Keys) lookup.Counter {
		c.Aggregator = aggregator.New(rdb, aggregator.Options{Keys: k, Window: window, KeyTTL: 15 * time.Minute, CountTTL: countTTL})
		return c
	})
	return f, c
}

// seed writes viewers who were last seen so long ago.
func (f *fixture) seed(t *testing.T, videoID, name string, n int, ago time.Duration) {
	t.Helper()
	at := f.now(t).Add(-ago).Unix()
	fields := make([]any, 0, 2*n)
	for i := range n {
		fields = append(fields, fmt.Sprintf("%s%d", name, i), at)
	}
	if err := f.db.HSet(t.Context(), f.online(videoID), fields...).Err(); err != nil {
		t.Fatalf("HSET: %v", err)
	}
}

func TestMissingCountIsComputed(t *testing.T) {
	t.Parallel()
	f, _ := newComputing(t, 0)
	f.seed(t, "10001", "here", 3, time.Minute)
	f.seed(t, "10001", "gone", 2, window+time.Minute)
	f.finishPass(t, 5*time.Minute)

	before := f.now(t).Truncate(time.Second)
	asOf := wantViewers(t, f, "10001", 3)
	if after := f.now(t); asOf.Before(before) || asOf.After(after) {
		t.Errorf("as of %v, want now, %v to %v", asOf, before, after)
	}
	got, err := f.db.HKeys(t.Context(), f.online("10001")).Result()
	if err != nil {
		t.Fatalf("HKEYS: %v", err)
	}
	if diff := cmp.Diff([]string{"here0", "here1", "here2"}, got); diff != "" {
		t.Errorf("hash after counting (-want +got):\n%s", diff)
	}
	if got, err := f.db.Get(t.Context(), f.count("10001")).Result(); got != "3" || err != nil {
		t.Errorf("count key = %q, %v, want 3", got, err)
	}
	if ttl, err := f.db.TTL(t.Context(), f.count("10001")).Result(); ttl <= 0 || err != nil {
		t.Errorf("TTL of the count key = %v, %v, want one", ttl, err)
	}
	wantOutcomes(t, f.reg, map[string]int{"computed": 1})
}

func TestPublishedCountIsNotComputed(t *testing.T) {
	t.Parallel()
	f, counter := newComputing(t, 0)
	f.seed(t, "10001", "here", 3, time.Minute)
	for range 3 {
		wantViewers(t, f, "10001", 3)
	}
	f.setCount(t, "zero", 0)
	wantViewers(t, f, "zero", 0) // a published zero is known, not missing
	if got := counter.calls.Load(); got != 1 {
		t.Errorf("computations = %d, want 1", got)
	}
	wantOutcomes(t, f.reg, map[string]int{"computed": 1, "hit": 3})
}

func TestThousandLookupsAtOnceComputeOnce(t *testing.T) {
	t.Parallel()
	f, counter := newComputing(t, 0)
	f.seed(t, "10001", "here", 300, time.Minute)
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if got, _, err := f.Viewers(t.Context(), "10001"); got != 300 || err != nil {
				t.Errorf("Viewers = %d, %v, want 300", got, err)
			}
		})
	}
	wg.Wait()
	if got := counter.calls.Load(); got != 1 {
		t.Errorf("computations = %d, want 1", got)
	}
}

// A stranger who looks up ids at random must not fill Redis.
func TestUnknownVideosCreateNoKeys(t *testing.T) {
	t.Parallel()
	f, _ := newComputing(t, 0)
	for i := range 20 {
		before := f.now(t).Truncate(time.Second)
		asOf := wantViewers(t, f, fmt.Sprintf("no such video %d", i), 0)
		if asOf.Before(before) {
			t.Errorf("as of %v, want now, %v or later", asOf, before)
		}
	}
	f.wantKeys(t)
	wantOutcomes(t, f.reg, map[string]int{"missing": 20})
}

func TestVideoWithStaleViewersOnlyIsZero(t *testing.T) {
	t.Parallel()
	f, _ := newComputing(t, 0)
	f.seed(t, "10001", "gone", 2, window+time.Minute)
	wantViewers(t, f, "10001", 0)
	if n, err := f.db.Exists(t.Context(), f.online("10001")).Result(); n != 0 || err != nil {
		t.Errorf("hash exists %d, %v, want it gone", n, err)
	}
}

func TestLargeVideoIsAsOfTheLastPass(t *testing.T) {
	t.Parallel()
	f, _ := newComputing(t, 0)
	f.seed(t, "10001", "here", 10_001, time.Minute)
	finished := f.finishPass(t, 5*time.Minute)
	if got := wantViewers(t, f, "10001", 10_001); !got.Equal(finished) {
		t.Errorf("as of %v, want the last pass's %v, as nobody counted", got, finished)
	}
	wantOutcomes(t, f.reg, map[string]int{"computed": 1})
}

func TestJunkIsComputedAndReplaced(t *testing.T) {
	t.Parallel()
	f, _ := newComputing(t, 0)
	for name, value := range junk {
		f.seed(t, name, "here", 3, time.Minute)
		f.setCount(t, name, value)
		wantViewers(t, f, name, 3)
		if got, err := f.db.Get(t.Context(), f.count(name)).Result(); got != "3" || err != nil {
			t.Errorf("count key that held %s = %q, %v, want 3", name, got, err)
		}
	}
	wantOutcomes(t, f.reg, map[string]int{"computed": len(junk)})
}

func TestForeignTypeIsComputedAndLeftAlone(t *testing.T) {
	t.Parallel()
	f, _ := newComputing(t, 0)
	f.seed(t, "10001", "here", 3, time.Minute)
	if err := f.db.RPush(t.Context(), f.count("10001"), "foreign").Err(); err != nil {
		t.Fatalf("RPUSH: %v", err)
	}
	wantViewers(t, f, "10001", 3)
	if got, err := f.db.LRange(t.Context(), f.count("10001"), 0, -1).Result(); err != nil || len(got) != 1 {
		t.Errorf("list at the count key = %q, %v, want it unchanged", got, err)
	}
}

// A string where the hash would be is nobody's viewers.
func TestForeignHashIsZero(t *testing.T) {
	t.Parallel()
	f, _ := newComputing(t, 0)
	if err := f.db.Set(t.Context(), f.online("10001"), "foreign", time.Minute).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	wantViewers(t, f, "10001", 0)
	f.wantKeys(t, f.online("10001"))
}

type panickingCounter struct{}

func (panickingCounter) Count(context.Context, string) (int64, time.Time, error) {
	panic("a fault in counting")
}

// It happens on a goroutine that nobody else would recover.
func TestPanicWhileCountingIsAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, func(redis.UniversalClient, keys.Keys) lookup.Counter { return panickingCounter{} })
	if _, _, err := f.Viewers(t.Context(), "10001"); err == nil || !strings.Contains(err.Error(), "a fault in counting") {
		t.Errorf("Viewers: %v, want the fault", err)
	}
	f.setCount(t, "10001", 7)
	wantViewers(t, f, "10001", 7)
	wantOutcomes(t, f.reg, map[string]int{"failed": 1, "hit": 1})
}

type failingCounter struct{ err error }

func (c failingCounter) Count(context.Context, string) (int64, time.Time, error) {
	return 0, time.Time{}, c.err
}

func TestFailedComputationIsAnError(t *testing.T) {
	t.Parallel()
	cannot := errors.New("cannot count")
	f := newFixture(t, lookup.Options{Cache: time.Hour}, func(redis.UniversalClient, keys.Keys) lookup.Counter { return failingCounter{cannot} })
	for range 2 { // an error is not cached
		if _, _, err := f.Viewers(t.Context(), "10001"); !errors.Is(err, cannot) {
			t.Errorf("Viewers: %v, want %v", err, cannot)
		}
	}
	wantOutcomes(t, f.reg, map[string]int{"failed": 2})
}
