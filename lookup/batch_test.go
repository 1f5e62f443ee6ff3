package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/lookup"
)

// batchSource is what Lookup and every fixture around one have.
type batchSource interface {
	Batch(ctx context.Context, videoIDs []string) ([]int64, time.Time, error)
}

// wantBatch looks several videos up, checks their numbers and returns as of when.
func wantBatch(t *testing.T, s batchSource, videoIDs []string, want ...int64) (asOf time.Time) {
	t.Helper()
	got, asOf, err := s.Batch(t.Context(), videoIDs)
	if err != nil {
		t.Errorf("Batch(%q): %v", videoIDs, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Batch(%q) (-want +got):\n%s", videoIDs, diff)
	}
	return asOf
}

// publish sets the counts of n videos: v0 has 0 viewers, v1 has 1, …
func (f *fixture) publish(t *testing.T, n int) (videoIDs []string, viewers []int64) {
	t.Helper()
	for i := range n {
		videoIDs, viewers = append(videoIDs, fmt.Sprintf("v%d", i)), append(viewers, int64(i))
		f.setCount(t, videoIDs[i], i)
	}
	return videoIDs, viewers
}

func TestBatchReadsAllCountsInOneRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	videos, viewers := f.publish(t, 100)
	finished := f.finishPass(t, time.Minute)
	wantViewers(t, f, "connects", 0)

	trips, commands := f.sent.trips.Load(), f.sent.commands.Load()
	if got := wantBatch(t, f, videos, viewers...); !got.Equal(finished) {
		t.Errorf("as of %v, want the last pass's %v", got, finished)
	}
	if got := f.sent.trips.Load() - trips; got != 1 {
		t.Errorf("round trips = %d, want 1", got)
	}
	if got := f.sent.commands.Load() - commands; got != 3 {
		t.Errorf("commands = %d, want 3: the counts, the last pass, the time", got)
	}
	wantOutcomesOf(t, f.reg, 2, map[string]int{"missing": 1, "hit": 100})
}

func TestBatchAsksOnlyForWhatIsNotCached(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{Cache: time.Hour}, nil)
	videos, _ := f.publish(t, 5)
	wantViewers(t, f, "v1", 1)
	wantViewers(t, f, "v3", 3)
	f.setCount(t, "v3", 33)
	f.sent.takeRead()

	wantBatch(t, f, videos, 0, 1, 2, 3, 4)
	if diff := cmp.Diff([]string{f.count("v0"), f.count("v2"), f.count("v4")}, f.sent.takeRead()); diff != "" {
		t.Errorf("keys read (-want +got):\n%s", diff)
	}
	commands := f.sent.commands.Load()
	wantBatch(t, f, videos, 0, 1, 2, 3, 4)
	wantViewers(t, f, "v4", 4) // a batch leaves what it learned to others
	if got := f.sent.commands.Load() - commands; got != 0 {
		t.Errorf("commands sent for cached values = %d, want 0", got)
	}
	wantOutcomesOf(t, f.reg, 5, map[string]int{"hit": 5, "cached": 8})
}

func TestBatchWithUnknownVideos(t *testing.T) {
	t.Parallel()
	f, counter := newComputing(t, 0)
	videos, viewers := f.publish(t, 50)
	for _, i := range []int{0, 20, 49} {
		videos[i], viewers[i] = fmt.Sprintf("no such video %d", i), 0
	}
	finished := f.finishPass(t, time.Minute)
	before := f.db.Keys(t.Context(), f.prefix+":*").Val()

	if got := wantBatch(t, f, videos, viewers...); !got.Equal(finished) {
		t.Errorf("as of %v, want the last pass's %v: the earliest", got, finished)
	}
	if got := counter.calls.Load(); got != 3 {
		t.Errorf("computations = %d, want 3", got)
	}
	if after := f.db.Keys(t.Context(), f.prefix+":*").Val(); len(after) != len(before) {
		t.Errorf("keys = %d, want %d as before", len(after), len(before))
	}
	wantOutcomesOf(t, f.reg, 1, map[string]int{"hit": 47, "missing": 3})
}

func TestBatchIsAsOfTheEarliest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{Cache: time.Hour}, nil)
	f.publish(t, 4)
	first := f.finishPass(t, 5*time.Minute)
	wantViewers(t, f, "v0", 0)
	second := f.finishPass(t, time.Minute)
	if got := wantBatch(t, f, []string{"v1", "v2"}, 1, 2); !got.Equal(second) {
		t.Errorf("as of %v, want %v", got, second)
	}
	for _, videos := range [][]string{{"v0", "v1"}, {"v1", "v0"}} {
		if _, got, err := f.Batch(t.Context(), videos); err != nil || !got.Equal(first) {
			t.Errorf("Batch(%q) is as of %v, %v, want %v", videos, got, err, first)
		}
	}
	f.finishPass(t, countTTL+time.Second)
	wantViewers(t, f, "v3", 3) // of which nobody can tell when that was true
	for _, videos := range [][]string{{"v0", "v3"}, {"v3", "v0"}, {"v1", "v3", "v2"}} {
		if _, got, err := f.Batch(t.Context(), videos); err != nil || !got.IsZero() {
			t.Errorf("Batch(%q) is as of %v, %v, want zero: unknown", videos, got, err)
		}
	}
}

func TestBatchAnswersAnIDAsOftenAsItIsAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	f.publish(t, 3)
	wantBatch(t, f, []string{"v2", "v1", "v2", "v2"}, 2, 1, 2, 2)
	if diff := cmp.Diff([]string{f.count("v2"), f.count("v1")}, f.sent.takeRead()); diff != "" {
		t.Errorf("keys read (-want +got):\n%s", diff)
	}
	wantOutcomesOf(t, f.reg, 1, map[string]int{"hit": 4})
}

func TestBatchOfNoneAsksNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	if got, asOf, err := f.Batch(t.Context(), nil); len(got) != 0 || !asOf.IsZero() || err != nil {
		t.Errorf("Batch of none = %v, %v, %v, want nothing", got, asOf, err)
	}
	if got := f.sent.commands.Load(); got != 0 {
		t.Errorf("commands sent = %d, want 0", got)
	}
}

func TestBatchNamesTheBadID(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	for bad, reason := range map[string]string{
		"":         "is missing; it takes 1 to 256 bytes",
		"count:zz": `must not begin with "count:", which is reserved for count keys`,
		"v0\nv1":   "has a control character",
	} {
		got, asOf, err := f.Batch(t.Context(), []string{"v0", "v1", bad, "v2", bad})
		var idErr *keys.IDError
		if !errors.As(err, &idErr) || *idErr != (keys.IDError{Field: "video_id[2]", Reason: reason}) {
			t.Errorf("Batch with %q: %v, want video_id[2]: %s", bad, err, reason)
		}
		if len(got) != 0 || !asOf.IsZero() {
			t.Errorf("Batch with %q = %v as of %v, want nothing", bad, got, asOf)
		}
	}
	if got := f.sent.commands.Load(); got != 0 {
		t.Errorf("commands sent = %d, want 0", got)
	}
	wantOutcomes(t, f.reg, map[string]int{"rejected": 3})
}

func TestBatchFailsWhereOneVideoCannotBeCounted(t *testing.T) {
	t.Parallel()
	cannot := errors.New("cannot count")
	f := newFixture(t, lookup.Options{}, func(redis.UniversalClient, keys.Keys) lookup.Counter { return failingCounter{cannot} })
	f.publish(t, 2)
	if got, _, err := f.Batch(t.Context(), []string{"v0", "uncounted", "v1"}); !errors.Is(err, cannot) || got != nil {
		t.Errorf("Batch = %v, %v, want no numbers and %v", got, err, cannot)
	}
	wantBatch(t, f, []string{"v0", "v1"}, 0, 1)
}

func TestBatchOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	where := redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()}
	f := newFixtureOn(t, where, c.Client(), lookup.Options{}, func(rdb redis.UniversalClient, k keys.Keys) lookup.Counter {
		return aggregator.New(rdb, aggregator.Options{Keys: k, Window: window, KeyTTL: 15 * time.Minute, CountTTL: countTTL})
	})
	videos, viewers := f.publish(t, 60)
	f.seed(t, "uncounted", "here", 3, time.Minute)
	f.seed(t, "list", "here", 4, time.Minute)
	if err := f.db.RPush(t.Context(), f.count("list"), "foreign").Err(); err != nil {
		t.Fatalf("RPUSH: %v", err)
	}
	videos, viewers = append(videos, "unknown", "uncounted", "list"), append(viewers, 0, 3, 4)
	finished := f.finishPass(t, time.Minute)
	if got := wantBatch(t, f, videos, viewers...); !got.Equal(finished) {
		t.Errorf("as of %v, want the last pass's %v", got, finished)
	}
	wantOutcomesOf(t, f.reg, 1, map[string]int{"hit": 60, "missing": 1, "computed": 2})
}

func TestBatchWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		first := v.pass(t, 7)
		wantViewers(t, v, "10001", 7)
		after(time.Minute)
		second := v.pass(t, 8)
		for i := range 3 {
			if err := v.redis.Set(fmt.Sprintf("video:online:count:v%d", i), strconv.Itoa(i)); err != nil {
				t.Fatalf("SET: %v", err)
			}
		}
		wantBatch(t, v, []string{"v0", "v1", "v2"}, 0, 1, 2)
		v.cut()
		after(cacheFor)
		if got := wantBatch(t, v, []string{"v2", "v1", "v0"}, 2, 1, 0); !got.Equal(second) {
			t.Errorf("as of %v, want %v", got, second)
		}
		if got := wantBatch(t, v, []string{"v2", "10001"}, 2, 7); !got.Equal(first) {
			t.Errorf("as of %v, want %v, when the older number was true", got, first)
		}
		for _, videos := range [][]string{{"v0", "never looked up"}, {"never looked up", "v0"}} {
			if got, _, err := v.Batch(t.Context(), videos); !errors.Is(err, errDown) || got != nil {
				t.Errorf("Batch(%q) = %v, %v, want no numbers and %v", videos, got, err, errDown)
			}
		}
		after(countTTL - cacheFor - time.Nanosecond)
		wantBatch(t, v, []string{"v0", "v1"}, 0, 1)
		after(time.Nanosecond)
		if _, _, err := v.Batch(t.Context(), []string{"v0", "v1"}); !errors.Is(err, errDown) {
			t.Errorf("Batch after %v without Redis: %v, want %v", countTTL, err, errDown)
		}
	})
}

func TestBatchWaitsForAStalledRedisOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, v *virtual) {
		v.pass(t, 7)
		wantBatch(t, v, []string{"10001", "none"}, 7, 0)
		v.stalled.Store(true)
		after(cacheFor)
		for _, want := range []time.Duration{timeout, 0} {
			start := time.Now()
			wantBatch(t, v, []string{"10001", "none"}, 7, 0)
			if took := time.Since(start); took != want {
				t.Errorf("a lookup of a stalled Redis took %v, want %v", took, want)
			}
		}
	})
}

// A thousand pages with the same list are one reading.
func TestIdenticalBatchesCollapse(t *testing.T) {
	t.Parallel()
	counter := &heldCounter{}
	inBubble(t, counter, func(t *testing.T, v *virtual) {
		counter.released = make(chan struct{})
		videos := []string{"a", "b", "c"} // with no counts, so that each reading counts them all
		var batches sync.WaitGroup
		for range 1000 {
			batches.Go(func() { wantBatch(t, v, videos, 7, 7, 7) })
		}
		synctest.Wait()
		close(counter.released)
		batches.Wait()
		if got := counter.calls.Load(); got != 3 {
			t.Errorf("computations = %d, want 3: of one reading", got)
		}
		wantOutcomesOf(t, v.reg, 1000, map[string]int{"computed": 3000})
	})
}

// The caller who happens to start a reading cannot take it along when giving up.
func TestBatchOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	counter := &heldCounter{}
	inBubble(t, counter, func(t *testing.T, v *virtual) {
		counter.released = make(chan struct{})
		gone, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, _, err := v.Batch(gone, []string{"a", "b"})
			first <- err
		}()
		synctest.Wait()
		var other sync.WaitGroup
		other.Go(func() { wantBatch(t, v, []string{"a", "b"}, 7, 7) })
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("Batch of the caller who gave up: %v, want %v", err, context.Canceled)
		}
		close(counter.released)
		other.Wait()
		if got := counter.calls.Load(); got != 2 {
			t.Errorf("computations = %d, want 2: of one reading", got)
		}
	})
}
