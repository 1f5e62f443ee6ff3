package stats

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/internal/counts"
	"headcount/recorder"
)

// worker makes passes that write all statistics.
type worker struct {
	*aggregator.Aggregator
	*Passes
}

func (e *env) newWorker() *worker {
	w := &worker{Passes: &Passes{
		Online: e.online, Plays: e.plays, Top: NewTop(e.store, 3, countTTL), Peaks: NewPeaks(e.store),
		History: NewHistory(e.store, 24*time.Hour), KeyTTL: keyTTL, Failures: e.failures,
	}}
	w.Aggregator = aggregator.New(e.raw, aggregator.Options{
		Keys: e.k, Window: window, KeyTTL: keyTTL, CountTTL: countTTL,
		Observe: func(began time.Time) aggregator.Observer { return w.Begin(began) },
	})
	return w
}

func (e *env) pass(w *worker) {
	e.Helper()
	_, err := w.Pass(e.Context())
	e.must(err)
}

func (e *env) wantNoFailures() {
	e.Helper()
	for _, name := range []string{nameOnline, nameUniques, namePlays, nameTop, namePeaks, nameHistory} {
		e.wantFailures(name, 0)
	}
}

func TestTopIsThatOfTheLastPass(t *testing.T) {
	onEach(t, func(e *env) {
		w := e.newWorker()
		list := func(limit int) []string {
			e.Helper()
			videos, viewers, _, err := w.Top.List(e.Context(), limit)
			e.must(err)
			var list []string
			for i := range videos {
				list = append(list, fmt.Sprint(videos[i], " ", viewers[i]))
			}
			return list
		}
		if got := list(0); got != nil {
			e.Errorf("top before a pass = %q, want none", got)
		}
		for video, n := range map[string]int{"a": 1, "b": 5, "c": 3, "d": 3, "e": 3, "日本語": 4} {
			e.playMany(video, 0, n)
		}
		before := e.redisNow().Truncate(time.Second)
		e.pass(w)
		if diff := cmp.Diff([]string{"b 5", "日本語 4", "e 3"}, list(0)); diff != "" {
			e.Errorf("top (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"b 5"}, list(1)); diff != "" {
			e.Errorf("top of one (-want +got):\n%s", diff)
		}
		_, _, asOf, err := w.Top.List(e.Context(), 0)
		e.must(err)
		if asOf.Before(before) || asOf.After(e.redisNow()) {
			e.Errorf("as of %v, want the pass's time", asOf)
		}
		e.wantTTL(e.k.Top(), countTTL-5*time.Second, countTTL)
		for i := range 5 {
			e.must(e.Leave(e.Context(), "b", "u"+strconv.Itoa(i), 0))
		}
		e.pass(w)
		if diff := cmp.Diff([]string{"日本語 4", "e 3", "d 3"}, list(0)); diff != "" {
			e.Errorf("top after b was left (-want +got):\n%s", diff)
		}
		e.wantNoFailures()
	})
}

func TestTopRefusesQuestions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	for _, limit := range []int{-1, 1001} {
		_, _, _, err := NewTop(e.store, 10, countTTL).List(e.Context(), limit)
		wantBadInput(t, err, "limit: must be a whole number from 1 to 1000")
	}
}

func TestTopOfTenThousand(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	top := NewTop(e.store, 10_000, countTTL)
	videos := make([]counts.Count, 10_001)
	for i := range videos {
		videos[i] = counts.Count{VideoID: strconv.Itoa(i), Viewers: int64(20_000 - i)}
	}
	e.must(top.replace(e.Context(), videos))
	if got := e.raw.ZCard(e.Context(), e.k.Top()).Val(); got != 10_000 {
		e.Errorf("the list has %d videos, want 10000", got)
	}
	e.must(top.replace(e.Context(), nil))
	if got := e.raw.Exists(e.Context(), e.k.Top()).Val(); got != 0 {
		e.Error("the list is still there when nobody watches")
	}
}

func TestLargestAreThoseOfASort(t *testing.T) {
	t.Parallel()
	all := make([]counts.Count, 1000)
	for i := range all {
		all[i] = counts.Count{VideoID: strconv.Itoa(i), Viewers: int64(i * 7919 % 100)}
	}
	for _, size := range []int{0, 1, 10, 999, 1000, 2000} {
		l := largest{size: size}
		for _, c := range all {
			l.add(c)
		}
		want := slices.SortedFunc(slices.Values(all), func(a, b counts.Count) int { return compare(b, a) })[:min(size, len(all))]
		if diff := cmp.Diff(want, l.sorted()); diff != "" && size > 0 || len(l.sorted()) != len(want) {
			t.Errorf("the largest %d (-want +got):\n%s", size, diff)
		}
	}
}

func (e *env) wantPeaks(w *worker, videoID string, today, ever int64) {
	e.Helper()
	gotToday, todayAt, gotEver, everAt, err := w.Peaks.Get(e.Context(), videoID)
	e.must(err)
	if gotToday != today || gotEver != ever || todayAt.IsZero() != (today == 0) || everAt.IsZero() != (ever == 0) {
		e.Errorf("peaks of %q = %d at %v, %d at %v, want %d and %d", videoID, gotToday, todayAt, gotEver, everAt, today, ever)
	}
}

func TestPeaksOnlyRise(t *testing.T) {
	onEach(t, func(e *env) {
		w := e.newWorker()
		e.wantPeaks(w, "10001", 0, 0)
		e.play("10001", "u1") // who is published at once
		e.pass(w)
		e.wantPeaks(w, "10001", 1, 1)
		e.playMany("10001", 0, 5)
		e.playMany("10002", 0, 2)
		e.pass(w)
		e.must(e.Leave(e.Context(), "10001", "u1", 0))
		e.pass(w)
		e.wantPeaks(w, "10001", 5, 5)
		e.wantPeaks(w, "10002", 2, 2)
		e.wantPeaks(w, "", 7, 7)
		e.wantTTL(e.k.Peak("10001"), peakTTL-time.Minute, peakTTL)
		e.wantNoFailures()
	})
}

// On a new day each video is looked at, also where nothing rose.
func TestPeaksOfANewDay(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	w := e.newWorker()
	e.playMany("10001", 0, 5)
	e.pass(w)
	e.must(e.raw.HSet(e.Context(), e.k.Peak("10001"), "day", "20200101", "today", 9, "ever", 9).Err())
	e.wantPeaks(w, "10001", 0, 9)
	e.pass(w)
	e.wantPeaks(w, "10001", 0, 9) // no day has begun for the worker
	yesterday := "20200101"
	w.Peaks.looked.Store(&yesterday)
	e.pass(w)
	e.wantPeaks(w, "10001", 5, 9)
}

// A peak that could not be written is not forgotten.
func TestPeaksAreWrittenLater(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	w := e.newWorker()
	e.must(e.raw.Set(e.Context(), e.k.Peak("10001"), "x", time.Minute).Err())
	e.playMany("10001", 0, 3)
	e.playMany("10002", 0, 2)
	e.pass(w)
	e.wantFailures(namePeaks, 1)
	e.wantPeaks(w, "10002", 2, 2)
	e.must(e.raw.Del(e.Context(), e.k.Peak("10001")).Err())
	e.pass(w)
	e.wantPeaks(w, "10001", 3, 3)
	e.wantFailures(namePeaks, 1)
}

func TestHistoryHasAPointForEachPass(t *testing.T) {
	onEach(t, func(e *env) {
		w := e.newWorker()
		points := func(video string) []int64 {
			e.Helper()
			at, viewers, err := w.History.Points(e.Context(), video, "1h")
			e.must(err)
			if !slices.IsSortedFunc(at, time.Time.Compare) || len(at) != len(viewers) {
				e.Errorf("points at %v", at)
			}
			return viewers
		}
		for i := range 3 {
			e.playMany("10001", 0, 2*i+1)
			w.History.last.Store(0) // as if the last one had been a while ago
			e.pass(w)
		}
		if diff := cmp.Diff([]int64{1, 3, 5}, points("10001")); diff != "" {
			e.Errorf("points of a video (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{1, 3, 5}, points("")); diff != "" {
			e.Errorf("points of the site (-want +got):\n%s", diff)
		}
		e.pass(w) // too soon
		if got := points(""); len(got) != 3 {
			e.Errorf("points = %v, want no more", got)
		}
		e.wantTTL(e.k.History("10001"), 24*time.Hour-time.Minute, 24*time.Hour)
		e.wantNoFailures()
	})
}

func TestHistoryIsTrimmedAndRepeatable(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	h := NewHistory(e.store, time.Hour)
	now := e.redisNow()
	add := func(age time.Duration, viewers int64) {
		e.Helper()
		h.last.Store(0)
		e.must(h.add(e.Context(), now.Add(-age), []counts.Count{{Viewers: viewers}}))
	}
	add(90*time.Minute, 1)
	add(50*time.Minute, 2)
	add(50*time.Minute, 3) // sent again
	add(55*time.Minute, 4) // a clock that was set back
	add(0, 5)
	_, viewers, err := h.Points(e.Context(), "", "")
	e.must(err)
	if diff := cmp.Diff([]int64{2, 5}, viewers); diff != "" {
		e.Errorf("points (-want +got):\n%s", diff)
	}
	if got := e.raw.XLen(e.Context(), e.k.History("")).Val(); got != 2 {
		e.Errorf("the stream has %d points, want 2", got)
	}
	_, _, err = h.Points(e.Context(), "", "2h")
	wantBadInput(t, err, "last: must be hours, 1h to 1h")
}

// A history is read in pages.
func TestHistoryOfManyPoints(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	h := NewHistory(e.store, 24*time.Hour)
	now := e.redisNow()
	pipe := e.raw.Pipeline()
	for i := range mostPoints {
		at := now.Add(-time.Duration(mostPoints-i) * 20 * time.Second)
		pipe.XAdd(e.Context(), &redis.XAddArgs{Stream: e.k.History("a"), ID: strconv.FormatInt(at.UnixMilli(), 10), Values: []any{"viewers", i}})
	}
	_, err := pipe.Exec(e.Context())
	e.must(err)
	_, viewers, err := h.Points(e.Context(), "a", "1d")
	e.must(err)
	for i, v := range viewers {
		if v != int64(i) {
			e.Fatalf("point %d = %d", i, v)
		}
	}
	if len(viewers) != mostPoints {
		e.Errorf("%d points, want %d", len(viewers), mostPoints)
	}
}

func TestAPartialPassChangesNoList(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	w := e.newWorker()
	e.playMany("10001", 0, 3)
	e.pass(w)
	e.playMany("10002", 0, 5)
	w.History.last.Store(0)
	pass := w.Begin(e.redisNow())
	pass.Counted(e.Context(), []counts.Count{{VideoID: "10002", Viewers: 5, Rose: true}})
	pass.Over(e.Context(), e.redisNow(), 5, false)
	videos, _, _, err := w.Top.List(e.Context(), 0)
	e.must(err)
	if diff := cmp.Diff([]string{"10001"}, videos); diff != "" {
		e.Errorf("top (-want +got):\n%s", diff)
	}
	if got := e.raw.XLen(e.Context(), e.k.History("")).Val(); got != 1 {
		e.Errorf("the history has %d points, want 1", got)
	}
	e.wantPeaks(w, "10002", 5, 5) // which is true, whatever failed
	e.wantPeaks(w, "", 3, 3)
}

func TestPassTrimsOnline(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	e.must(e.raw.ZAdd(e.Context(), e.k.OnlineUsers(), redis.Z{Score: 1, Member: "long gone"}).Err())
	_, err := e.Online(e.Context(), "u1")
	e.must(err)
	e.pass(e.newWorker())
	if got := e.raw.ZRange(e.Context(), e.k.OnlineUsers(), 0, -1).Val(); !slices.Equal(got, []string{"u1"}) {
		e.Errorf("on the site are %q, want u1", got)
	}
}

// Nothing of a statistic that is off is written.
func TestPassesWithEverythingOff(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	p := &Passes{Failures: e.failures}
	pass := p.Begin(e.redisNow())
	if pass.Anew() {
		t.Error("all counts are wanted anew")
	}
	pass.Counted(e.Context(), []counts.Count{{VideoID: "a", Viewers: 1, Rose: true}})
	pass.Over(e.Context(), e.redisNow(), 1, true)
	if got := e.raw.Keys(e.Context(), e.k.Top()+"*").Val(); len(got) > 0 {
		t.Errorf("there are keys: %q", got)
	}
}
