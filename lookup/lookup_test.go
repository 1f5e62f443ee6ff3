package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/lookup"
)

func TestViewersReadsCountInOneRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	f.setCount(t, "10001", 23)
	finished := f.finishPass(t, time.Minute)
	wantViewers(t, f, "connects", 0)

	before := f.sent.trips.Load()
	if got := wantViewers(t, f, "10001", 23); !got.Equal(finished) {
		t.Errorf("as of %v, want the last pass's %v", got, finished)
	}
	if got := f.sent.trips.Load() - before; got != 1 {
		t.Errorf("round trips = %d, want 1", got)
	}
	wantOutcomes(t, f.reg, map[string]int{"missing": 1, "hit": 1})
}

func TestCachedValueAsksNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{Cache: time.Hour}, nil)
	f.setCount(t, "10001", 23)
	finished := f.finishPass(t, time.Minute)
	wantViewers(t, f, "10001", 23)

	sent := f.sent.commands.Load()
	f.setCount(t, "10001", 24)
	f.finishPass(t, 0)
	if got := wantViewers(t, f, "10001", 23); !got.Equal(finished) {
		t.Errorf("as of %v, want %v, which goes with the number", got, finished)
	}
	if got := f.sent.commands.Load(); got != sent {
		t.Errorf("commands sent for a cached value = %d, want 0", got-sent)
	}
	wantOutcomes(t, f.reg, map[string]int{"hit": 1, "cached": 1})
}

// Zeros are cached like any number, or a video nobody watches would be the dearest.
func TestCachedZeroAsksNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{Cache: time.Hour}, nil)
	wantViewers(t, f, "10001", 0)
	f.setCount(t, "10001", 24)
	wantViewers(t, f, "10001", 0)
	wantOutcomes(t, f.reg, map[string]int{"missing": 1, "cached": 1})
}

func TestVideosAreCachedApart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{Cache: time.Hour}, nil)
	f.setCount(t, "a*", 1)
	f.setCount(t, "abc", 2)
	for range 2 {
		wantViewers(t, f, "a*", 1)
		wantViewers(t, f, "abc", 2)
	}
}

func TestWithoutCacheEveryLookupAsks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	for _, n := range []int64{1, 2, 3} {
		f.setCount(t, "10001", n)
		wantViewers(t, f, "10001", n)
	}
	wantOutcomes(t, f.reg, map[string]int{"hit": 3})
}

func TestAsOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ago   time.Duration // since the last pass finished
		known bool
	}{
		"just finished":            {0, true},
		"younger than a count":     {countTTL - 10*time.Second, true},
		"older than a count lives": {countTTL + time.Second, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, lookup.Options{}, nil)
			finished := f.finishPass(t, tt.ago)
			f.setCount(t, "10001", 23)
			for video, viewers := range map[string]int64{"10001": 23, "missing": 0} {
				got := wantViewers(t, f, video, viewers)
				if tt.known && !got.Equal(finished) {
					t.Errorf("as of %v, want %v", got, finished)
				}
				if !tt.known && !got.IsZero() {
					t.Errorf("as of %v, want zero: unknown", got)
				}
			}
		})
	}
}

func TestAsOfUnknown(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, f *fixture, lastPass string) error{
		"no pass yet": func(*testing.T, *fixture, string) error { return nil },
		"no complete pass yet": func(t *testing.T, f *fixture, lastPass string) error {
			t.Helper()
			return f.db.HSet(t.Context(), lastPass, "started_at", f.now(t).Unix()).Err()
		},
		"not a number": func(t *testing.T, f *fixture, lastPass string) error {
			t.Helper()
			return f.db.HSet(t.Context(), lastPass, "finished_at", "now").Err()
		},
		"another type": func(t *testing.T, f *fixture, lastPass string) error {
			t.Helper()
			return f.db.Set(t.Context(), lastPass, "now", 0).Err()
		},
		"no answer to TIME": func(t *testing.T, f *fixture, lastPass string) error {
			t.Helper()
			f.rdb.AddHook(timeFails{})
			return f.db.HSet(t.Context(), lastPass, "finished_at", f.now(t).Unix()).Err()
		},
	}
	for name, seed := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, lookup.Options{}, nil)
			if err := seed(t, f, f.prefix+":worker:last_pass"); err != nil {
				t.Fatalf("seed: %v", err)
			}
			f.setCount(t, "10001", 23)
			if got := wantViewers(t, f, "10001", 23); !got.IsZero() {
				t.Errorf("as of %v, want zero: unknown", got)
			}
			wantUnknown(t, f.reg, 1)
		})
	}
}

func TestUnknownIsCountedForEachVideo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{Cache: time.Minute}, nil)
	f.setCount(t, "10001", 23)
	f.setCount(t, "10002", 5)
	for range 2 { // from Redis, then from memory
		if _, _, err := f.Batch(t.Context(), []string{"10001", "10002"}); err != nil {
			t.Fatal(err)
		}
	}
	wantViewers(t, f, "10001", 23)
	wantUnknown(t, f.reg, 5)
	f.finishPass(t, time.Second)
	f.setCount(t, "10003", 7)
	wantViewers(t, f, "10003", 7)
	wantUnknown(t, f.reg, 5)
}

func wantUnknown(t *testing.T, reg prometheus.Gatherer, want int) {
	t.Helper()
	const name = "headcount_lookups_unknown_total"
	text := fmt.Sprintf("# HELP %[1]s Lookups answered with a number of which nobody can tell when it was true (as_of is null): no complete pass within count_ttl.\n# TYPE %[1]s counter\n%[1]s %[2]d\n", name, want)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
		t.Error(err)
	}
}

// timeFails is a hook that makes every answer to TIME an error.
type timeFails struct{}

func (timeFails) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (timeFails) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (timeFails) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Name() == "time" {
				cmd.SetErr(errors.New("broken on purpose"))
			}
		}
		return err
	}
}

func TestMissingCountIsZero(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	if err := f.db.HSet(t.Context(), f.online("10001"), "u1", f.now(t).Unix()).Err(); err != nil {
		t.Fatalf("HSET: %v", err)
	}
	wantViewers(t, f, "10001", 0) // without a Counter nobody reads the hash
	f.wantKeys(t, f.online("10001"))
	wantOutcomes(t, f.reg, map[string]int{"missing": 1})
}

// junk is what a count key never holds when nobody else writes to it.
var junk = map[string]string{
	"text":           "many",
	"empty":          "",
	"negative":       "-1",
	"fraction":       "1.5",
	"too large":      "99999999999999999999",
	"spaces":         " 7 ",
	"two numbers":    "7 8",
	"not even UTF-8": "\xff",
}

func TestJunkIsAMissingCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	for name, value := range junk {
		f.setCount(t, name, value)
		wantViewers(t, f, name, 0)
	}
	wantOutcomes(t, f.reg, map[string]int{"missing": len(junk)})
}

func TestForeignTypeIsAMissingCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	if err := f.db.RPush(t.Context(), f.count("10001"), "foreign").Err(); err != nil {
		t.Fatalf("RPUSH: %v", err)
	}
	wantViewers(t, f, "10001", 0)
	f.wantKeys(t, f.count("10001"))
	wantOutcomes(t, f.reg, map[string]int{"missing": 1})
}

func TestBadIDsAreRejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	bad := []string{"", "count:zz", strings.Repeat("x", keys.MaxIDBytes+1), "a\nb", "a\xffb"}
	for _, id := range bad {
		_, _, err := f.Viewers(t.Context(), id)
		var idErr *keys.IDError
		if !errors.As(err, &idErr) || idErr.Field != "video_id" {
			t.Errorf("Viewers(%q): %v, want a *keys.IDError of the video", id, err)
		}
	}
	if got := f.sent.commands.Load(); got != 0 {
		t.Errorf("commands sent = %d, want 0", got)
	}
	wantOutcomes(t, f.reg, map[string]int{"rejected": len(bad)})
}

func TestIDsRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{Cache: time.Hour}, nil)
	ids := []string{"a[b]*", "a?", `\`, "a b", "日本語", "🎬", strings.Repeat("x", keys.MaxIDBytes), "a*", "abc", "zz"}
	for i, id := range ids {
		f.setCount(t, id, i+1)
	}
	for i, id := range ids {
		wantViewers(t, f, id, int64(i+1))
	}
}

func TestMetricsPassTheLinter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, lookup.Options{}, nil)
	wantViewers(t, f, "10001", 0)
	problems, err := testutil.GatherAndLint(f.reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("GatherAndLint = %v, %v, want no problem", problems, err)
	}
}
