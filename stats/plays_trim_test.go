package stats

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"headcount/recorder"
)

// seedOld writes hashes of plays with fields on both sides of each limit.
func (e *env) seedOld(n int, now time.Time) {
	e.Helper()
	pipe := e.raw.Pipeline()
	for i := range n {
		pipe.HSet(e.Context(), e.k.Plays(strconv.Itoa(i)), "total", 9,
			"h:"+now.Add(-8*24*time.Hour).Format(hourText), 1, "h:"+now.Add(-8*24*time.Hour-time.Hour).Format(hourText), 1,
			"d:"+now.AddDate(0, 0, -400).Format(dayText), 1, "d:"+now.AddDate(0, 0, -401).Format(dayText), 1,
			"w:young", now.Add(-time.Hour+time.Minute).UnixMicro(), "w:old", now.Add(-time.Hour-time.Minute).UnixMicro(), "w:text", "x",
		)
	}
	_, err := pipe.Exec(e.Context())
	e.must(err)
}

func (e *env) wantTrimmed(n int, now time.Time) {
	e.Helper()
	want := []string{
		"d:" + now.AddDate(0, 0, -400).Format(dayText), "h:" + now.Add(-8*24*time.Hour).Format(hourText), "total", "w:young",
	}
	for i := range n {
		got := e.raw.HKeys(e.Context(), e.k.Plays(strconv.Itoa(i))).Val()
		if slices.Sort(got); !slices.Equal(got, want) {
			e.Fatalf("hash %d has %q, want %q", i, got, want)
		}
	}
}

func TestPlaysAreTrimmedOnceADay(t *testing.T) {
	onEach(t, func(e *env) {
		now := e.redisNow()
		w := e.newWorker()
		e.seedOld(300, now)
		e.pass(w)
		e.wantTrimmed(300, now)
		e.wantTTL(e.k.LastPass(), keyTTL-time.Minute, keyTTL)

		e.seedOld(1, now)
		e.pass(e.newWorker()) // another, which knows from Redis that it is done
		if got := e.raw.HLen(e.Context(), e.k.Plays("0")).Val(); got != 8 {
			e.Errorf("the hash has %d fields, want all 8", got)
		}
		e.must(e.raw.HSet(e.Context(), e.k.LastPass(), fieldTrimmedAt, now.Add(-trimEvery-time.Minute).Unix()).Err())
		e.pass(w)
		e.wantTrimmed(1, now)
		e.wantNoFailures()
	})
}

// What one pass does not get through, later ones do, from where it stopped.
func TestTrimmingGoesOnWhereItStopped(t *testing.T) {
	onEach(t, func(e *env) {
		now := e.redisNow()
		e.seedOld(1500, now)
		place, steps := "", 0
		for {
			var err error
			place, err = e.plays.sweepPages(e.Context(), now, place, 1)
			e.must(err)
			if steps++; place == "" {
				break
			}
		}
		e.wantTrimmed(1500, now)
		if steps < 2 {
			e.Errorf("it took %d steps: the test has shown nothing", steps)
		}
	})
}

func TestTrimmingOfLargeAndForeignHashes(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	now := e.redisNow()
	fields := []any{"total", 1}
	for i := range 5000 {
		fields = append(fields, fmt.Sprint("w:", i), 1)
	}
	e.must(e.raw.HSet(e.Context(), e.k.Plays("many"), fields...).Err())
	e.must(e.raw.Set(e.Context(), e.k.Plays("text"), "x", time.Minute).Err())
	e.must(e.plays.trimAll(e.Context(), now, []string{e.k.Plays("many"), e.k.Plays("text")}))
	if got := e.raw.HLen(e.Context(), e.k.Plays("many")).Val(); got != 1 {
		e.Errorf("%d fields are left, want the total", got)
	}
}
