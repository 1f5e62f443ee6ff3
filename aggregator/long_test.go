package aggregator

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
	"headcount/recorder"
)

// stepped is an env on a server whose clock can be stepped.
func stepped(t *testing.T) (*env, *redistest.Clock) {
	t.Helper()
	clock := redistest.NewClock(t)
	return newEnv(t, clock.Start(t).Addr()), clock
}

// A pass may take longer than a program's clock may be fast: who plays meanwhile
// has not a time of the far future.
func TestPassThatTakesLong(t *testing.T) {
	t.Parallel()
	for _, viewers := range []int{50, 3 * pageSize} {
		t.Run(fmt.Sprint(viewers, " viewers"), func(t *testing.T) {
			t.Parallel()
			e, clock := stepped(t)
			rec := recorder.New(e.raw, recorder.Options{Keys: e.k, KeyTTL: keyTTL, CountTTL: countTTL, Timeout: 5 * time.Second})
			e.seedMany("10001", viewers, 0)
			e.seed("10001", map[string]int64{"gone": 700})
			later := once(func() {
				clock.Step(t, ahead+time.Minute)
				must(t, e.raw.HSet(t.Context(), e.k.Online("10001"), "fast", e.now()+int64((ahead-5*time.Second)/time.Second)).Err())
				for i := range viewers {
					_, err := rec.Play(t.Context(), "10001", "age0-"+strconv.Itoa(i))
					must(t, err)
				}
			})
			e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
				if anyNames(cmds, "hrandfield", e.k.Online("10001")) {
					later()
				}
			}})
			want := int64(viewers + 1) // and the one whose clock is fast
			if sum := e.pass(); sum.Viewers != want || sum.Evicted != 1 || sum.Invalid != 0 {
				t.Errorf("got %d viewers, %d evicted, %d of them invalid; want %d, 1, 0", sum.Viewers, sum.Evicted, sum.Invalid, want)
			}
			e.wantCounts(map[string]string{"10001": fmt.Sprint(want)})
		})
	}
}

// Counts are written again before they expire, also where each pass is made by a worker
// that knows nothing, as with --once, or by two in turns.
func TestCountsLiveOnWhateverWorkerMakesThePass(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(e *env, workers []*Aggregator, n int){
		"a new one each time": func(e *env, _ []*Aggregator, _ int) { e.newWorker() },
		"two in turns":        func(e *env, workers []*Aggregator, n int) { e.agg = workers[n%2] },
		"one":                 func(*env, []*Aggregator, int) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, clock := stepped(t)
			const videos = 40
			e.seedVideos(videos, map[string]int64{"a": 0})
			e.pass()
			workers := []*Aggregator{e.agg, nil}
			e.newWorker()
			workers[1] = e.agg
			sets := spyOn(e)
			for n := range 40 {
				clock.Step(t, 45*time.Second)
				for i := range videos {
					must(t, e.raw.HSet(t.Context(), e.k.Online(strconv.Itoa(i)), "a", e.now()).Err())
					must(t, e.raw.Expire(t.Context(), e.k.Online(strconv.Itoa(i)), keyTTL).Err())
				}
				e.wantEach(videos, "1")
				next(e, workers, n)
				e.pass()
			}
			const most = 10 * videos // twice in each half of a TTL of 12 minutes, in 30 of them
			if sent := sets.take()["set"]; sent > most {
				t.Errorf("%d counts were set, want at most %d", sent, most)
			}
		})
	}
}

// A video that finds no place in the memory is watched all the same.
func TestCountsLiveOnWithoutAPlaceInTheMemory(t *testing.T) {
	t.Parallel()
	e, clock := stepped(t)
	e.pass()
	crowded := e.agg.kept.Load().sameBucket(bucketSize + 4)
	for range 30 {
		clock.Step(t, 45*time.Second)
		for _, video := range crowded {
			must(t, e.raw.HSet(t.Context(), e.k.Online(video), "a", e.now()).Err())
			must(t, e.raw.Expire(t.Context(), e.k.Online(video), keyTTL).Err())
		}
		e.pass()
		for _, video := range crowded {
			if ttl := e.raw.TTL(t.Context(), e.k.Count(video)).Val(); ttl < countTTL/2-time.Minute {
				t.Fatalf("the count of %s lives for %s more, want about half of %s at least", video, ttl, countTTL)
			}
		}
	}
}

// sameBucket returns videos that share a bucket of the table.
func (m *memory) sameBucket(n int) []string {
	buckets := make(map[uint64][]string)
	for i := 0; ; i++ {
		video := strconv.Itoa(i)
		bucket, _ := bits.Mul64(maphash.String(m.seed, video)|1, uint64(len(m.fingerprint)/bucketSize))
		if buckets[bucket] = append(buckets[bucket], video); len(buckets[bucket]) == n {
			return buckets[bucket]
		}
	}
}

// Nobody watches a video whose hash has become something else, also where it did
// between two pages, with an eviction under way.
func TestLargeHashBecomesSomethingElse(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedMany("10001", 5*pageSize, 0)
		e.seedMany("10001", pageSize, 700)
		must(t, e.raw.Set(t.Context(), e.k.Count("10001"), 77, countTTL).Err())
		pages := 0
		e.intercept(hook{before: func(ctx context.Context, cmds []redis.Cmder) {
			if anyNames(cmds, "hscan", e.k.Online("10001")) {
				if pages++; pages == 3 {
					must(t, e.raw.Set(ctx, e.k.Online("10001"), "text", 0).Err())
				}
			}
		}})
		if sum := e.pass(); sum.Foreign != 1 || sum.Viewers != 0 {
			t.Errorf("got %d foreign keys, %d viewers; want 1, 0", sum.Foreign, sum.Viewers)
		}
		e.wantCounts(map[string]string{"10001": "0"})
	})
}
