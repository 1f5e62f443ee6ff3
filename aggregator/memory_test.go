package aggregator

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

// spy counts the commands that a pass sends, by name.
type spy struct {
	mu       sync.Mutex
	commands map[string]int
}

func spyOn(e *env) *spy {
	s := &spy{commands: make(map[string]int)}
	e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, cmd := range cmds {
			s.commands[cmd.Name()]++
		}
	}})
	return s
}

// take returns how often each command was sent since the last take.
func (s *spy) take() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := maps.Clone(s.commands)
	clear(s.commands)
	return taken
}

func TestPassReadsNoHashInWhichNobodyCanBeStale(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedVideos(50, map[string]int64{"a": 0, "b": 100})
		e.seed("soon", map[string]int64{"a": 0, "b": 598})
		e.seedMany("large", 1000, 0)
		spy := spyOn(e)

		e.pass()
		if sent := spy.take(); sent["hrandfield"] < 52 || sent["set"] < 52 {
			t.Errorf("the first pass sent %v, want every hash read and every count set", sent)
		}

		e.pass()
		if sent := spy.take(); sent["hrandfield"] > 1 || sent["hscan"] > 0 || sent["set"] > 1 || sent["evalsha"] > 1 {
			t.Errorf("the second pass sent %v, want no reading and no writing, but perhaps of the one that is due", sent)
		}

		must(t, e.raw.HSet(t.Context(), e.k.Online("7"), "c", e.now()).Err())
		must(t, e.raw.HDel(t.Context(), e.k.Online("8"), "a").Err())
		sum := e.pass()
		if sent := spy.take(); sent["hrandfield"] > 1 || sent["set"] < 2 || sent["set"] > 3 {
			t.Errorf("the third pass sent %v, want two counts set and no hash read but the one that is due", sent)
		}
		e.wantCounts(map[string]string{"7": "3", "8": "1", "9": "2", "large": "1000"})
		if sum.Viewers < 1000+101 {
			t.Errorf("viewers: got %d, want those of skipped hashes too", sum.Viewers)
		}
	})
}

// A hash that was large is read in pages at once.
func TestPassRemembersThatAHashIsLarge(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedMany("large", 1000, 0)
		e.pass()
		e.seedMany("large", 300, 700)
		m := e.agg.kept.Load()
		sight := m.see("large", 0)
		m.keep(sight, 0, sight.renew, sight.large) // it is due
		spy := spyOn(e)
		e.pass()
		if sent := spy.take(); sent["hrandfield"] != 0 || sent["hscan"] < 2 {
			t.Errorf("sent %v, want only pages read", sent)
		}
		e.wantCounts(map[string]string{"large": "1000"})

		must(t, e.raw.Del(t.Context(), e.k.Online("large")).Err())
		must(t, e.raw.Set(t.Context(), e.k.Online("large"), "x", time.Hour).Err())
		m.keep(m.see("large", 0), 0, 0, true)
		if sum := e.pass(); sum.Foreign != 1 {
			t.Errorf("foreign keys: got %d, want the one that is no hash any more", sum.Foreign)
		}
		e.wantCounts(map[string]string{"large": "0"})
	})
}

// A writer two minutes slow adds a viewer right after the reading: the hash is
// due when that viewer goes stale, not when the ones read do.
func TestPassIsInTimeForASlowWriter(t *testing.T) {
	t.Parallel()
	s := &sweep{pass: &pass{window: window, now: time.Unix(1_700_000_000, 0)}}
	for _, tc := range []struct{ oldest, due int64 }{
		{1_700_000_000, 1_700_000_000 - 121 + 600},
		{1_700_000_000 - 100, 1_700_000_000 - 121 + 600},
		{1_700_000_000 - 500, 1_700_000_000 + 100},
	} {
		if got := s.dueAfter(&reading{oldest: tc.oldest}); got != tc.due {
			t.Errorf("due with a viewer of %d: got %d, want %d", tc.oldest, got, tc.due)
		}
	}
}

// The hash was emptied and filled again to the same length between two passes;
// the recorder has set its count to 1 on the way.
func TestPassSeesACountThatIsWrongAtTheSameLength(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		e.seed("10001", map[string]int64{"a": 0, "b": 0, "c": 0})
		e.pass()
		e.wantCounts(map[string]string{"10001": "3"})
		must(t, e.raw.Del(ctx, e.k.Online("10001")).Err())
		e.seed("10001", map[string]int64{"d": 0, "e": 0, "f": 0})
		must(t, e.raw.Set(ctx, e.k.Count("10001"), 1, countTTL).Err())
		e.pass()
		e.wantCounts(map[string]string{"10001": "3"})
	})
}

func TestPassMendsTheKeysOfAVideoThatItDoesNotRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		spoil func(e *env)
		want  string
	}{
		{"count deleted", func(e *env) { e.raw.Del(e.t.Context(), e.k.Count("10001")) }, "2"},
		{"count overwritten without TTL", func(e *env) { e.raw.Set(e.t.Context(), e.k.Count("10001"), 2, 0) }, "2"},
		{"hash without TTL", func(e *env) { e.raw.Persist(e.t.Context(), e.k.Online("10001")) }, "2"},
		{"hash deleted", func(e *env) { e.raw.Del(e.t.Context(), e.k.Online("10001")) }, "0"},
		{"hash of another type", func(e *env) {
			e.raw.Del(e.t.Context(), e.k.Online("10001"))
			e.raw.Set(e.t.Context(), e.k.Online("10001"), "x", time.Hour)
		}, "0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, redistest.Start(t).Addr()) // alone, so that one key without TTL is told from none
			e.seed("10001", map[string]int64{"a": 0, "b": 0})
			e.pass()
			tc.spoil(e)
			e.pass()
			e.wantCounts(map[string]string{"10001": tc.want})
			for _, key := range []string{e.k.Online("10001"), e.k.Count("10001")} {
				if e.raw.Exists(t.Context(), key).Val() == 1 {
					e.wantTTL(key, time.Minute, time.Hour)
				}
			}
		})
	}
}

// Where every key has a TTL, INFO says so, and no key is asked for its own.
func TestPassAsksForTTLsOnlyWhereSomeAreMissing(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Addr())
	e.seed("10001", map[string]int64{"a": 0})
	spy := spyOn(e)
	e.pass()
	spy.take()
	e.pass()
	if sent := spy.take(); sent["ttl"] != 0 {
		t.Errorf("asked for %d TTLs, want none", sent["ttl"])
	}
	must(t, e.raw.Set(t.Context(), "elsewhere", "x", 0).Err())
	e.pass()
	if sent := spy.take(); sent["ttl"] != 2 {
		t.Errorf("asked for %d TTLs, want 2: of the hash and of the count", sent["ttl"])
	}
}

func TestPassAsksForEachTTLWhereINFODoesNotTell(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		db      int
		refused bool
	}{{"refused", 0, true}, {"another database is in order", 3, false}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			ctx := t.Context()
			must(t, server.Client().Set(ctx, "in database 0", "x", time.Hour).Err())
			if tc.refused {
				must(t, server.Client().Do(ctx, "ACL", "SETUSER", "default", "-info").Err())
			}
			e := newEnvOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{server.Addr()}, DB: tc.db})
			e.seed("10001", map[string]int64{"a": 0})
			e.pass()
			must(t, e.raw.Persist(ctx, e.k.Online("10001")).Err())
			must(t, e.raw.Persist(ctx, e.k.Count("10001")).Err())
			e.pass()
			e.wantTTL(e.k.Online("10001"), keyTTL-5*time.Second, keyTTL)
			e.wantTTL(e.k.Count("10001"), countTTL-5*time.Second, countTTL+countTTL/50)
		})
	}
}

func TestAllHaveTTL(t *testing.T) {
	t.Parallel()
	const info = "# Keyspace\r\ndb0:keys=3,expires=3,avg_ttl=10\r\ndb1:keys=3,expires=2,avg_ttl=0\r\ndb11:keys=5,expires=5,avg_ttl=0\r\n"
	for db, want := range map[int]bool{0: true, 1: false, 11: true, 2: false} {
		if got := allHaveTTL(info, db); got != want {
			t.Errorf("db%d: got %v, want %v", db, got, want)
		}
	}
}

// A count that does not change is written again before it expires, not sooner.
func TestPassRenewsACountBeforeItExpires(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("10001", map[string]int64{"a": 0})
		e.pass()
		m := e.agg.kept.Load()
		s := m.see("10001", 0)
		half := e.now() + int64(countTTL/time.Second)/2
		if s.renew < half-5 || s.renew > half {
			t.Errorf("to be renewed at %d, want half a TTL from now, %d", s.renew, half)
		}
		m.keep(s, s.due, e.now(), false)
		must(t, e.raw.Expire(t.Context(), e.k.Count("10001"), time.Minute).Err())
		e.pass()
		e.wantTTL(e.k.Count("10001"), countTTL-5*time.Second, countTTL+countTTL/50)
	})
}

// A worker that takes over writes the counts that changed; the others have time.
func TestPassTrustsTheCountsOfACompletePassBefore(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("10001", map[string]int64{"a": 0})
		e.seed("10002", map[string]int64{"a": 0})
		e.pass()
		e.seed("10002", map[string]int64{"b": 0})
		e.newWorker()
		spy := spyOn(e)
		e.pass()
		if sent := spy.take(); sent["set"] != 1 {
			t.Errorf("the new worker set %d counts, want the 1 that changed", sent["set"])
		}
		e.wantCounts(map[string]string{"10001": "1", "10002": "2"})
		s := e.agg.kept.Load().see("10001", 0)
		if latest := e.now() + int64(countTTL/time.Second)/4 + 1; s.renew <= e.now()-5 || s.renew > latest {
			t.Errorf("to be renewed at %d, want by %d", s.renew, latest)
		}
		must(t, e.raw.Del(t.Context(), e.k.LastPass()).Err())
		e.newWorker()
		spy.take()
		e.pass()
		if sent := spy.take(); sent["set"] != 2 {
			t.Errorf("without a pass before, %d counts were set, want both", sent["set"])
		}
	})
}

// Its counts may be about to expire, or nobody can tell.
func TestPassTrustsNoCountsOfAnOldPass(t *testing.T) {
	for name, until := range map[string]int64{"just over": 1, "long ago": -3600, "as long as none lives": int64(countTTL/time.Second) + 10} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *env) {
				e.seed("10001", map[string]int64{"a": 0})
				e.pass()
				must(t, e.raw.HSet(t.Context(), e.k.LastPass(), "counts_until", e.now()+until).Err())
				must(t, e.raw.Expire(t.Context(), e.k.Count("10001"), time.Minute).Err())
				e.newWorker()
				e.pass()
				e.wantTTL(e.k.Count("10001"), countTTL-5*time.Second, countTTL+countTTL/50)
			})
		})
	}
}

func TestMemoryForgetsWhenAClockStepsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(0)
		known := func() bool { return m.see("10001", 0).due != 0 }
		learn := func() { m.keep(m.see("10001", 0), 1_700_000_500, 0, false) }
		now := time.Unix(1_700_000_000, 0)
		check := func(server string, now time.Time) {
			m.check(window, map[string]reference{server: {server: now, ours: time.Now()}})
		}

		check("a", now)
		learn()
		<-time.After(30 * time.Second)
		check("a", now.Add(30*time.Second))
		if !known() {
			t.Error("forgot although the clock goes on")
		}
		<-time.After(30 * time.Second)
		check("a", now.Add(50*time.Second)) // ten seconds less than went by
		if known() {
			t.Error("remembers although the clock stepped back")
		}
		learn()
		check("b", now.Add(60*time.Second))
		if known() {
			t.Error("remembers although another server took over")
		}
		learn()
		check("a", now.Add(60*time.Second))
		if known() {
			t.Error("remembers although the first server is back")
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const videos = 200_000
	m := newMemory(videos)
	for i := range videos {
		m.keep(m.see(strconv.Itoa(i), 1), int64(1000+i), 5, false)
	}
	lost := 0
	for i := range videos {
		s := m.see(strconv.Itoa(i), 1)
		if !s.handled {
			lost++ // its bucket was full
		} else if s.due != int64(1000+i) || s.renew != 5 {
			t.Fatalf("video %d: got %+v, want what was kept", i, s)
		}
	}
	if lost > videos/1000 {
		t.Errorf("lost %d of %d videos, want next to none at this size", lost, videos)
	}
	if len(m.fingerprint) != largeTable {
		t.Errorf("places: got %d, want %d", len(m.fingerprint), largeTable)
	}
	for i := range largeTable + largeTable/8 {
		m.see(strconv.Itoa(i), 2)
	}
	if len(m.fingerprint) != largeTable || m.videos > largeTable {
		t.Errorf("got %d videos in %d places, want no more than %d", m.videos, len(m.fingerprint), largeTable)
	}
}

// What has no place in a small table has one from the next pass on.
func TestMemoryGrowsBetweenPasses(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	const videos = 200_000
	number := m.begin()
	placed := 0
	for i := range videos {
		if m.see(strconv.Itoa(i), number).index != nowhere {
			placed++
		}
	}
	if placed == 0 || placed > smallTable {
		t.Errorf("%d videos found a place among %d", placed, smallTable)
	}
	for i := range videos { // a second sight finds what the first did
		if s := m.see(strconv.Itoa(i), number); s.handled != (s.index != nowhere) {
			t.Fatalf("video %d: got %+v, want it dealt with if it has a place", i, s)
		}
	}
	number = m.begin()
	without := 0 // now and then, nine of them share a bucket
	for i := range videos {
		if m.see(strconv.Itoa(i), number).index == nowhere {
			without++
		}
	}
	if without > videos/1000 {
		t.Errorf("%d of %d videos have no place after the table grew", without, videos)
	}
}

// However little is remembered, the totals are exact: no video counts twice,
// by its hash and by its count key.
func TestPassCountsEachVideoOnceWithoutPlacesToRemember(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.pass()
		m := e.agg.kept.Load()
		m.allocate(4 * bucketSize)
		want := make(map[string]string)
		for i := range 300 {
			e.seed(fmt.Sprint(i), map[string]int64{"a": 0, "b": 0})
			want[fmt.Sprint(i)] = "2"
		}
		must(t, e.raw.Set(t.Context(), e.k.Count("nobody"), 5, countTTL).Err())
		want["nobody"] = "0"
		for range 3 {
			if sum := e.pass(); sum.Videos != 300 || sum.Viewers != 600 {
				t.Errorf("got %d videos and %d viewers, want 300 and 600", sum.Videos, sum.Viewers)
			}
		}
		e.wantCounts(want)
	})
}

// A full bucket gives up the video that is due first, as that is read anyway.
func TestMemoryDropsWhatIsDueFirst(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	full := oneTooMany(m)
	const first = bucketSize - 3 // due at 100
	var dropped sight
	for i, video := range full[:bucketSize] {
		s := m.see(video, 1)
		m.keep(s, int64(100+(i+3)%bucketSize), 7, true)
		if i == first {
			dropped = s
		}
	}
	if s := m.see(full[bucketSize], 2); s.handled || s.due != 0 || s.renew != 0 || s.large {
		t.Errorf("got %+v for the new video, want nothing of the one in whose place it is", s)
	}
	for i, video := range full {
		if there := slices.Contains(m.fingerprint, printOf(m, video)); there == (i == first) {
			t.Errorf("video %d of the bucket: in the memory: %v, want %v", i, there, i != first)
		}
	}
	m.keep(dropped, 500, 500, true) // it was read meanwhile
	if s := m.see(full[bucketSize], 2); s.due != 0 || s.renew != 0 || s.large {
		t.Errorf("got %+v for the new video, want nothing that was kept for the dropped one", s)
	}
}

// oneTooMany finds videos that share a bucket, one more than it holds.
func oneTooMany(m *memory) []string {
	perBucket := make(map[uint64][]string)
	for i := 0; ; i++ {
		video := strconv.Itoa(i)
		bucket, _ := bits.Mul64(printOf(m, video), uint64(len(m.fingerprint)/bucketSize))
		if perBucket[bucket] = append(perBucket[bucket], video); len(perBucket[bucket]) > bucketSize {
			return perBucket[bucket]
		}
	}
}

func printOf(m *memory, video string) uint64 { return maphash.String(m.seed, video) | 1 }

// The number of a pass comes round: a video of 255 passes ago is not taken for
// one that this pass has dealt with.
func TestMemoryTellsPassesApart(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	m.see("10001", m.begin())
	for i := range 600 {
		number := m.begin()
		if m.see(strconv.Itoa(i), number).handled || !m.see(strconv.Itoa(i), number).handled {
			t.Fatalf("pass %d: a video is to be taken as dealt with from its second sight on", i)
		}
		if i >= 255 && m.see(strconv.Itoa(i-255), number).handled {
			t.Fatalf("pass %d: a video is taken as dealt with that was so 255 passes ago", i)
		}
	}
}
