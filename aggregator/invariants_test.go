package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
)

func TestPassCountsWhoIsWithinTheWindowAndEvictsTheRest(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("10001", map[string]int64{"now": 0, "nearly": 590, "just gone": 601, "long gone": 86400})
		e.seed("10002", map[string]int64{"gone": 700})

		sum := e.pass()

		e.wantCounts(map[string]string{"10001": "2", "10002": "0"})
		e.wantViewers("10001", "now", "nearly")
		e.wantViewers("10002")
		if n := e.raw.Exists(t.Context(), e.k.Online("10002")).Val(); n != 0 {
			t.Error("the emptied hash still exists")
		}
		got := Summary{Videos: sum.Videos, Viewers: sum.Viewers, Evicted: sum.Evicted, Healed: sum.Healed}
		want := Summary{Videos: 1, Viewers: 2, Evicted: 3, Healed: 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("summary (-want +got):\n%s", diff)
		}
	})
}

// Whoever comes back between the pass's read and its eviction is not evicted,
// and is counted by that very pass.
func TestPassKeepsAViewerWhoReturnsMeanwhile(t *testing.T) {
	for _, gone := range []int{1, 20} { // evict.lua has a way for few and one for many
		t.Run(fmt.Sprint("beside ", gone), func(t *testing.T) {
			onEach(t, func(t *testing.T, e *env) {
				e.seed("10001", map[string]int64{"back": 700})
				e.seedMany("10001", gone, 700)
				e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
					if names(cmds[0], "evalsha", e.k.Online("10001")) {
						e.seed("10001", map[string]int64{"back": 0})
					}
				}})

				sum := e.pass()

				e.wantCounts(map[string]string{"10001": "1"})
				e.wantViewers("10001", "back")
				if sum.Evicted != int64(gone) {
					t.Errorf("evicted: got %d, want %d", sum.Evicted, gone)
				}
			})
		})
	}
}

// The window is that of the pass's beginning, however long it takes.
func TestPassCountsWhoGoesStaleWhileItRuns(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		var began int64 // the pass's own reading of the clock
		e.intercept(hook{
			before: func(ctx context.Context, cmds []redis.Cmder) {
				if names(cmds[0], "hrandfield", e.k.Online("10001")) {
					for e.now() < began+2 { // Redis's clock is all there is to wait for
						must(t, ctx.Err())
					}
				}
			},
			after: func(_ context.Context, cmds []redis.Cmder) {
				if now, ok := cmds[0].(*redis.TimeCmd); ok {
					began = now.Val().Unix()
					e.seedValues("10001", map[string]string{"at the edge": strconv.FormatInt(began-600, 10)})
				}
			},
		})
		if _, err := e.agg.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.wantCounts(map[string]string{"10001": "1"})
	})
}

func TestPassCountsEachSizeExactly(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		for _, n := range []int{1, 127, 129, 513, 100_000} {
			e.seedMany(fmt.Sprint(n), n, 5)
			e.seedMany(fmt.Sprint(n), n/3, 700)
		}
		sum := e.pass()
		want := map[string]string{}
		for _, n := range []int{1, 127, 129, 513, 100_000} {
			want[fmt.Sprint(n)] = fmt.Sprint(n)
		}
		e.wantCounts(want)
		if wantViewers := int64(1 + 127 + 129 + 513 + 100_000); sum.Viewers != wantViewers {
			t.Errorf("viewers: got %d, want %d", sum.Viewers, wantViewers)
		}
	})
}

// HSCAN may return a viewer more than once, also on several pages.
func TestPassCountsAViewerOnceWhenHSCANReturnsItTwice(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedMany("large", 2000, 0)
		e.seed("large", map[string]int64{"gone": 700})
		var first []string // of the large hash's viewers
		e.intercept(hook{after: func(_ context.Context, cmds []redis.Cmder) {
			for _, cmd := range cmds {
				page, ok := cmd.(*redis.ScanCmd)
				if !ok || !names(cmd, "hscan", e.k.Online("large")) {
					continue
				}
				values, cursor := page.Val()
				if first == nil {
					first = slices.Clone(values[:20])
				}
				page.SetVal(append(values, first...), cursor)
			}
		}})

		sum := e.pass()

		e.wantCounts(map[string]string{"large": "2000"})
		if sum.Evicted != 1 || sum.Viewers != 2000 {
			t.Errorf("got %d evicted and %d viewers, want 1 and 2000", sum.Evicted, sum.Viewers)
		}
	})
}

func TestPassLeavesNoKeyWithoutTTL(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		e.seed("bare", map[string]int64{"a": 0})
		must(t, e.raw.Set(ctx, e.k.Count("bare"), 7, 0).Err())
		must(t, e.raw.Set(ctx, e.k.Count("gone"), 7, 0).Err())
		must(t, e.raw.Set(ctx, e.k.Count("gone and 0"), 0, 0).Err())

		sum := e.pass()

		e.wantTTL(e.k.Online("bare"), keyTTL-5*time.Second, keyTTL)
		const jittered = countTTL + countTTL/50
		for _, video := range []string{"bare", "gone", "gone and 0"} {
			e.wantTTL(e.k.Count(video), countTTL-5*time.Second, jittered)
		}
		e.wantTTL(e.k.LastPass(), keyTTL-5*time.Second, keyTTL)
		e.wantCounts(map[string]string{"bare": "1", "gone": "0", "gone and 0": "0"})
		if sum.Healed != 2 {
			t.Errorf("healed: got %d, want 2: a hash, and a count of 0", sum.Healed)
		}
		if sum := e.pass(); sum.Healed != 0 {
			t.Errorf("healed by the next pass: got %d, want 0", sum.Healed)
		}
	})
}

// A program that beats by HSET alone never renews the TTL: the pass does before
// the hash would take its viewers along.
func TestPassRenewsATTLThatWouldLoseAViewer(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		e.seed("foreign", map[string]int64{"a": 0})
		must(t, e.raw.Expire(ctx, e.k.Online("foreign"), time.Minute).Err())
		e.seed("ours", map[string]int64{"a": 400})
		must(t, e.raw.Expire(ctx, e.k.Online("ours"), keyTTL-400*time.Second).Err())

		if sum := e.pass(); sum.Healed != 1 {
			t.Errorf("healed: got %d, want 1", sum.Healed)
		}
		e.wantTTL(e.k.Online("foreign"), keyTTL-5*time.Second, keyTTL)
		e.wantTTL(e.k.Online("ours"), keyTTL-405*time.Second, keyTTL-400*time.Second)
	})
}

// Another program may shorten a TTL between two passes. It shows where the pass asks for TTLs: while any key has none.
func TestPassRenewsATTLThatWasShortened(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedVideos(20, map[string]int64{"a": 0})
		e.pass()
		for i := range 20 {
			must(t, e.raw.Set(t.Context(), "x"+e.k.Online(strconv.Itoa(i)), "without a TTL", 0).Err())
			must(t, e.raw.Expire(t.Context(), e.k.Online(strconv.Itoa(i)), 8*time.Second).Err())
		}
		if sum := e.pass(); sum.Skipped != 20 || sum.Healed != 20 {
			t.Errorf("%d hashes not read and %d healed, want 20 of both", sum.Skipped, sum.Healed)
		}
		for i := range 20 {
			e.wantTTL(e.k.Online(strconv.Itoa(i)), keyTTL-5*time.Second, keyTTL)
		}
		if sum := e.pass(); sum.Healed != 0 {
			t.Errorf("%d healed again, want none", sum.Healed)
		}
	})
}

// A hash whose id no request may have is counted like the others, and its count goes with it. Statistics are not told:
// the empty id is the site's.
func TestPassTreatsBothKeysOfAnUnacceptableIDAlike(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		w := &witness{}
		e.observe(w)
		ids := []string{"", strings.Repeat("x", 300), "bad\xff"}
		for _, id := range ids {
			e.seed(id, map[string]int64{"a": 0})
			must(t, e.raw.Set(t.Context(), e.k.Count(id+"gone"), 3, 0).Err())
		}
		e.pass()
		w.want(t, "a pass")
		for _, id := range ids {
			e.wantCounts(map[string]string{id: "1", id + "gone": "0"})
			e.wantTTL(e.k.Count(id+"gone"), 0, countTTL+countTTL/50)
			must(t, e.raw.Del(t.Context(), e.k.Online(id)).Err())
		}
		e.pass()
		for _, id := range ids {
			e.wantCounts(map[string]string{id: "0"})
		}
	})
}

func TestPassEvictsWhatIsNoPlausibleTime(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		now := e.now()
		at := func(offset int64) string { return strconv.FormatInt(now+offset, 10) }
		e.seedValues("10001", map[string]string{
			"now":              at(0),
			"fraction":         at(-5) + ".25",
			"two minutes fast": at(119),
			"two minutes slow": at(-120),
			"tomorrow":         at(86400),
			"milliseconds":     at(0) + "000",
			"text":             "yesterday",
			"empty":            "",
			"zero":             "0",
			"negative":         "-5",
			"hexadecimal":      "0x7fffffff",
			"exponent":         "1e9",
			"not a number":     "nan",
			"spaces":           " " + at(0),
			"two points":       at(0) + ".1.2",
			"endless":          strings.Repeat("9", 60),
			"stale":            at(-700),
		})

		sum := e.pass()

		e.wantViewers("10001", "now", "fraction", "two minutes fast", "two minutes slow")
		e.wantCounts(map[string]string{"10001": "4"})
		if sum.Invalid != 12 || sum.Evicted != 13 {
			t.Errorf("got %d invalid of %d evicted, want 12 of 13", sum.Invalid, sum.Evicted)
		}
		if got := testutil.ToFloat64(e.agg.metrics.invalid); got != 12 {
			t.Errorf("headcount_invalid_values_total: got %v, want 12", got)
		}
	})
}

func TestPassLeavesForeignKeysAlone(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		must(t, e.raw.Set(ctx, e.k.Online("string"), "x", 0).Err())
		must(t, e.raw.RPush(ctx, e.k.Online("list"), "x").Err())
		must(t, e.raw.XAdd(ctx, &redis.XAddArgs{Stream: e.k.Online("stream"), ID: "1-1", Values: []any{"f", "v"}}).Err())
		must(t, e.raw.HSet(ctx, e.k.Count("hash"), "u", "1").Err())
		must(t, e.raw.RPush(ctx, e.k.Count("counted"), "x").Err())
		e.seed("counted", map[string]int64{"a": 0, "gone": 700})
		e.seed("fine", map[string]int64{"a": 0})
		foreign := []string{e.k.Online("string"), e.k.Online("list"), e.k.Online("stream"), e.k.Count("hash"), e.k.Count("counted")}
		before := dump(e, foreign)

		for range 3 {
			if sum := e.pass(); sum.Foreign != int64(len(foreign)) {
				t.Errorf("foreign keys: got %d, want %d", sum.Foreign, len(foreign))
			}
		}

		if diff := cmp.Diff(before, dump(e, foreign)); diff != "" {
			t.Errorf("foreign keys changed (-before +after):\n%s", diff)
		}
		e.wantCounts(map[string]string{"fine": "1"})
		e.wantViewers("counted", "a")
		var reported []string
		for _, entry := range e.logs.FilterMessageSnippet("another type").All() {
			reported = append(reported, entry.ContextMap()["key"].(string))
		}
		slices.Sort(reported)
		slices.Sort(foreign)
		if diff := cmp.Diff(foreign, reported); diff != "" {
			t.Errorf("keys reported over three passes (-want +got):\n%s", diff)
		}
	})
}

func dump(e *env, names []string) map[string]string {
	e.t.Helper()
	content := make(map[string]string)
	for _, key := range names {
		content[key] = e.raw.Dump(e.t.Context(), key).Val() + e.raw.TTL(e.t.Context(), key).String()
	}
	return content
}

func TestPassShowsZeroOnceTheHashIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		for _, video := range []string{"deleted", "expired", "other type", "stays"} {
			e.seed(video, map[string]int64{"a": 0})
		}
		e.pass()
		e.wantCounts(map[string]string{"deleted": "1", "expired": "1", "other type": "1", "stays": "1"})

		must(t, e.raw.Del(ctx, e.k.Online("deleted")).Err())
		must(t, e.raw.PExpire(ctx, e.k.Online("expired"), time.Millisecond).Err())
		for e.raw.Exists(ctx, e.k.Online("expired")).Val() == 1 { // until Redis's clock has moved
			must(t, ctx.Err())
		}
		must(t, e.raw.Set(ctx, e.k.Online("other type"), "x", 0).Err())
		e.pass()
		e.wantCounts(map[string]string{"deleted": "0", "expired": "0", "other type": "0", "stays": "1"})

		// A 0 is not renewed: it goes by itself.
		must(t, e.raw.Expire(ctx, e.k.Count("deleted"), time.Minute).Err())
		e.pass()
		e.wantTTL(e.k.Count("deleted"), 50*time.Second, time.Minute)
	})
}

// A recorder makes the hash and sets the count while the pass is about to zero it.
func TestPassDoesNotZeroAVideoThatIsWatchedAgain(t *testing.T) {
	for name, prepare := range map[string]func(e *env){
		"unknown to the worker": func(e *env) {
			must(e.t, e.raw.Set(e.t.Context(), e.k.Count("10001"), 1, countTTL).Err())
		},
		"known to the worker": func(e *env) {
			e.seed("10001", map[string]int64{"a": 0})
			e.pass()
			must(e.t, e.raw.Del(e.t.Context(), e.k.Online("10001")).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *env) {
				prepare(e)
				played := false
				e.intercept(hook{before: func(ctx context.Context, cmds []redis.Cmder) {
					if names(cmds[0], "set", e.k.Count("10001")) && !played {
						played = true
						e.seed("10001", map[string]int64{"a": 0})
						must(t, e.raw.Set(ctx, e.k.Count("10001"), 1, countTTL).Err())
					}
				}})
				e.pass()
				if !played {
					t.Fatal("the pass did not zero the count")
				}
				e.wantCounts(map[string]string{"10001": "1"})
			})
		})
	}
}

func TestPassesMakeNoCountOfACount(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("10001", map[string]int64{"a": 0})
		e.seed("日本語 🎬 a[b]*?\\", map[string]int64{"a": 0})
		nobodys := e.k.Count("count:zz") // no id leads to it
		must(t, e.raw.Set(t.Context(), nobodys, 7, time.Hour).Err())
		for range 3 {
			if sum := e.pass(); sum.Errors != 0 || sum.Videos != 2 || sum.Foreign != 0 {
				t.Errorf("got %d videos, %d errors, %d foreign keys; want 2, 0, 0", sum.Videos, sum.Errors, sum.Foreign)
			}
		}
		if got := e.raw.GetDel(t.Context(), nobodys).Val(); got != "7" {
			t.Errorf("%s: got %q, want it unchanged", nobodys, got)
		}
		e.wantCounts(map[string]string{"10001": "1", "日本語 🎬 a[b]*?\\": "1", "count:10001": ""})
		if n := len(e.raw.Keys(t.Context(), e.k.Count("count:")+"*").Val()); n != 0 {
			t.Errorf("%d count:count: keys", n)
		}
	})
}

// The prefix is text, not a pattern, and one installation leaves another alone.
func TestPassStaysUnderItsPrefix(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		other := "x" + e.k.Online("10001")
		must(t, e.raw.HSet(ctx, other, "gone", "1").Err())
		e.seed("10001", map[string]int64{"a": 0})
		e.pass()
		if n := e.raw.HLen(ctx, other).Val(); n != 1 {
			t.Errorf("the hash under another prefix has %d viewers, want its 1", n)
		}
	})
}

func TestPassIsFewRoundTripsAndBoundedReads(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedVideos(1000, map[string]int64{"a": 0, "b": 0, "c": 0, "d": 0, "gone": 700})
		for i := range 8 {
			e.seedMany(fmt.Sprint("large", i), 5_000, 0)
			e.seedMany(fmt.Sprint("large", i), 500, 700)
		}
		var mu sync.Mutex
		trips, largest, longest, candidates := 0, 0, 0, 0
		e.intercept(hook{after: func(_ context.Context, cmds []redis.Cmder) {
			mu.Lock()
			defer mu.Unlock()
			trips++
			viewers := 0
			for _, cmd := range cmds {
				if page, ok := cmd.(*redis.ScanCmd); ok {
					values, _ := page.Val()
					viewers += len(values)
				}
				longest = max(longest, len(cmd.Args()))
				if names(cmd, "evalsha", "") {
					candidates += (len(cmd.Args()) - 4) / 2 // besides name, digest, number of keys, and key
				}
				if names(cmd, "scan", "") && cmd.Args()[len(cmd.Args())-1].(int64) > 1000 {
					t.Errorf("%v asks for more than 1,000 keys", cmd.Args())
				}
			}
			largest = max(largest, viewers)
		}})

		e.pass()

		// 1,000 small hashes and 48 pages of large ones, next to whatever other
		// keys the shared server's SCAN has to pass by.
		if trips > 600 {
			t.Errorf("round trips: got %d, want at most 600 for 49,000 viewers", trips)
		}
		if most := 9000; largest > most { // four pages of 1,024 viewers and their times, roughly
			t.Errorf("one round trip read %d values, want at most %d", largest, most)
		}
		if candidates < 5000 || candidates > 6000 {
			t.Errorf("evict.lua looked at %d viewers, want each of the 5,000 stale ones once, and some twice that HSCAN returned twice", candidates)
		}
		if most := scanCount + 300; longest > most { // MGET of the counts; a SCAN may return some more
			t.Errorf("one command has %d arguments, want at most %d", longest, most)
		}
	})
}

func TestPassStopsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedVideos(2000, map[string]int64{"a": 0})
		lost := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		afterwards := 0
		e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
			if ctx.Err() != nil {
				afterwards++
			} else if names(cmds[0], "hrandfield", "") {
				cancel(lost) // within the pass's first reading
			}
		}})
		sum, err := e.agg.Pass(ctx)
		if !errors.Is(err, ErrCutShort) || !errors.Is(err, lost) || sum.Errors != 0 {
			t.Errorf("got %d errors and error %v, want none, and ErrCutShort with its cause", sum.Errors, err)
		}
		if most := 2 + scanCount/maxOpen; afterwards > most { // the rest of what one SCAN found, at most
			t.Errorf("%d more commands were tried after the context ended, want at most %d", afterwards, most)
		}
		if n := e.raw.Exists(t.Context(), e.k.LastPass()).Val(); n != 0 {
			t.Error("a pass cut short was written down")
		}
		e.wantPasses("cut_short")
	})
}

func TestPassWritesDownWhatItFound(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("10001", map[string]int64{"a": 0, "b": 0, "gone": 700})
		from := e.now()
		e.pass()
		e.pass()
		got := e.raw.HGetAll(t.Context(), e.k.LastPass()).Val()
		until, err := strconv.ParseInt(got["counts_until"], 10, 64)
		if half := int64(countTTL/time.Second) / 2; err != nil || until < from+half || until > e.now()+half {
			t.Errorf("counts_until: got %q, want half a TTL from now", got["counts_until"])
		}
		delete(got, "counts_until")
		if recent := got["recent"]; strings.Count(recent, `"holder":"test:1"`) != 2 {
			t.Errorf("recent passes: got %s, want 2 of test:1", recent)
		}
		delete(got, "recent")
		if took, err := strconv.Atoi(got["took_ms"]); err != nil || took < 0 || took > 60_000 {
			t.Errorf("took_ms: got %q, want milliseconds", got["took_ms"])
		}
		delete(got, "took_ms")
		for _, field := range []string{"started_at", "finished_at", "leading_since"} {
			at, err := strconv.ParseInt(got[field], 10, 64)
			if err != nil || at < from || at > e.now() {
				t.Errorf("%s: got %q, want Unix seconds from %d on", field, got[field], from)
			}
			delete(got, field)
		}
		want := map[string]string{
			"passes": "2", "videos": "1", "viewers": "2", "read": "0", "skipped": "1", "evicted": "0", "errors": "0", "holder": "test:1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("last pass (-want +got):\n%s", diff)
		}
	})
}

func TestPassWarnsOnceWhenItFindsNothingInAFullDatabase(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Addr())
	ctx := t.Context()
	warned := func() int { return e.logs.FilterMessageSnippet("database is not empty").Len() }

	e.pass()
	if n := warned(); n != 0 {
		t.Errorf("%d warnings about an empty database, want none", n)
	}
	for i := range 3 {
		must(t, e.raw.Set(ctx, fmt.Sprint("elsewhere:", i), "x", 0).Err())
	}
	e.pass()
	e.pass()
	if n := warned(); n != 1 {
		t.Errorf("%d warnings after two empty passes, want 1", n)
	}
	e.seed("10001", map[string]int64{"a": 0})
	e.pass()
	must(t, e.raw.Del(ctx, e.k.Online("10001")).Err())
	e.pass()
	if n := warned(); n != 1 {
		t.Errorf("%d warnings, want none for that the last viewer left", n)
	}
	must(t, e.raw.Del(ctx, e.k.Count("10001")).Err())
	e.pass()
	e.pass()
	if n := warned(); n != 2 {
		t.Errorf("%d warnings after it was empty again, want 2", n)
	}
}

// Somebody wrote nonsense into the last-pass hash: it does not stay for ever.
func TestPassMendsTheLastPass(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		must(t, e.raw.HSet(t.Context(), e.k.LastPass(), "passes", "abc", "finished_at", "zzz").Err())
		from := e.now()
		e.pass()
		got := e.raw.HGetAll(t.Context(), e.k.LastPass()).Val()
		if at, err := strconv.ParseInt(got["finished_at"], 10, 64); got["passes"] != "1" || err != nil || at < from {
			t.Errorf("last pass: got passes %q, finished_at %q; want 1, and now", got["passes"], got["finished_at"])
		}
		e.wantTTL(e.k.LastPass(), keyTTL-5*time.Second, keyTTL)
	})
}

func TestPassWithoutRedisIsAnErrorAndNotEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEnv(t, server.Addr())
	e.seed("10001", map[string]int64{"a": 0})
	server.Kill(t)
	sum, err := e.agg.Pass(t.Context())
	if err == nil || sum.Errors == 0 {
		t.Errorf("got %d errors and error %v, want both", sum.Errors, err)
	}
	if got := testutil.ToFloat64(e.agg.metrics.lastComplete); got != 0 {
		t.Errorf("last complete pass: got %v, want none", got)
	}
}

// Two passes at once, and passes over a hash that is played and left meanwhile,
// come to the same counts.
func TestPassesAtOnceAgree(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		for i := range 200 {
			e.seedMany(fmt.Sprint(i), 20, 0)
			e.seedMany(fmt.Sprint(i), 10, 700)
		}
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				if _, err := e.agg.Pass(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		e.wantEach(200, "20")
	})
}

func TestSetWindowIsInForceFromTheNextPass(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("10001", map[string]int64{"a": 0, "b": 400})
		e.pass()
		e.wantCounts(map[string]string{"10001": "2"})
		e.agg.SetWindow(5 * time.Minute)
		e.pass()
		e.wantCounts(map[string]string{"10001": "1"})
	})
}

// What is told by its length is not read, and what is gone is neither.
func TestPassTellsWhatItReadAndSkipped(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("small", map[string]int64{"a": 0, "gone": 700})
		e.seed("gone", map[string]int64{"gone": 700})
		e.seedMany("large", 600, 0)
		want := func(pass string, read, skipped int64) {
			t.Helper()
			if sum := e.pass(); sum.Read != read || sum.Skipped != skipped {
				t.Errorf("%s: got %d read and %d skipped, want %d and %d", pass, sum.Read, sum.Skipped, read, skipped)
			}
		}
		want("the first pass", 3, 0)
		want("a second", 0, 2)
		e.seed("new", map[string]int64{"a": 0})
		want("with a new video", 1, 2)
		e.newWorker()
		want("by a new worker", 3, 0)
	})
}
