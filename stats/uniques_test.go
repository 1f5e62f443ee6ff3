package stats

import (
	"strings"
	"testing"
	"time"

	"headcount/internal/redisclient"
	"headcount/recorder"
)

func (e *env) wantUniques(videoID, last string, want int64) {
	e.Helper()
	got, _, _, err := e.uniques.Count(e.Context(), videoID, last)
	e.must(err)
	if off := want * 2 / 100; got < want-off || got > want+off {
		e.Errorf("uniques of %q in %s = %d, want %d and 2 %%", videoID, last, got, want)
	}
}

// run sends the calls of a statistic, and checks that they succeed.
func (e *env) run(calls []*redisclient.ScriptCall) {
	e.Helper()
	redisclient.RunScripts(e.Context(), e.raw, calls)
	for _, c := range calls {
		e.must(c.Reply.Err())
	}
}

func TestUniquesCountEachViewerOnce(t *testing.T) {
	onEach(t, func(e *env) {
		for range 3 {
			e.play("10001", "u1")
			e.play("10001", "u2")
			e.play("10002", "u2")
		}
		e.wantUniques("10001", "1h", 2)
		e.wantUniques("10002", "1h", 1)
		e.wantUniques("", "1h", 2)
		e.wantUniques("none", "7d", 0)
		e.must(e.Leave(e.Context(), "10001", "u1", 0))
		e.wantUniques("10001", "1h", 2)
	})
}

func TestUniquesOfManyAreClose(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	for first := 0; first < 20_000; first += 5_000 {
		e.playMany("10001", first, 5_000)
		e.playMany("10002", first/2, 5_000)
	}
	e.wantUniques("10001", "", 20_000)
	e.wantUniques("10002", "24h", 12_500)
	e.wantUniques("", "2d", 20_000)
}

// Whatever braces an id has, its hours can be counted together.
func TestUniquesOfIDsWithBraces(t *testing.T) {
	onEach(t, func(e *env) {
		now := e.redisNow()
		for _, video := range []string{"}", "}{", "{}", "{", "a}b", "{a}", "}}}", "{{", "}10001"} {
			e.play(video, "u1")
			e.run(e.uniques.Watched(now.Add(-2*time.Hour), video, []any{"u2"}))
			e.wantUniques(video, "3h", 2)
		}
	})
}

func TestUniquesExpire(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	e.play("10001", "u1")
	found := 0
	for _, video := range []string{"10001", ""} {
		for _, at := range []time.Time{e.redisNow(), e.redisNow().Add(-time.Minute)} { // the hour may just have ended
			if key := e.k.Uniques(video, at.Format(hourText)); e.raw.Exists(e.Context(), key).Val() == 1 {
				found++
				e.wantTTL(key, uniquesTTL-time.Minute, uniquesTTL)
			}
		}
	}
	if found < 2 {
		e.Errorf("found %d keys, want that of the video and that of the site", found)
	}
}

// The hour is that of the zone, and the span begins with it.
func TestUniquesInAZone(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	zone, err := time.LoadLocation("Asia/Kathmandu") // a quarter of an hour beside the others
	e.must(err)
	u := NewUniques(e.newStore(Options{Zone: zone}))
	now := e.redisNow().In(zone)
	for age := range 4 {
		calls := u.Watched(now.Add(-time.Duration(age)*time.Hour), "10001", []any{age})
		if want := e.k.Uniques("10001", now.Add(-time.Duration(age)*time.Hour).Format("2006010215")); calls[0].Key != want {
			e.Errorf("key = %q, want %q", calls[0].Key, want)
		}
		e.run(calls)
	}
	got, from, to, err := u.Count(e.Context(), "10001", "3h")
	e.must(err)
	if got != 3 && got != 2 { // 2 if an hour has begun since
		e.Errorf("uniques = %d, want 3", got)
	}
	if from.Minute() != 0 || from.Second() != 0 || to.Sub(from) < 2*time.Hour || to.Sub(from) > 3*time.Hour {
		e.Errorf("uniques from %v to %v, want the beginning of an hour, and now", from, to)
	}
}

func TestUniquesRefuseQuestions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	for _, last := range []string{"0h", "169h", "8d", "-1h", "+1h", "1.5h", "h", "1", "1w", "1h ", "01h", "99999999999h"} {
		if _, _, _, err := e.uniques.Count(e.Context(), "10001", last); last == "01h" {
			e.must(err)
		} else {
			wantBadInput(t, err, "last: must be hours, 1h to 168h, or days, 1d to 7d")
		}
	}
	_, _, _, err := e.uniques.Count(e.Context(), "count:x", "1h")
	wantBadInput(t, err, `video_id: must not begin with "count:", which is reserved for count keys`)
	_, _, _, err = e.uniques.Count(e.Context(), strings.Repeat("x", 257), "1h")
	wantBadInput(t, err, "video_id: has 257 bytes; it takes 1 to 256")
}
