package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"headcount/internal/keys"
	"headcount/internal/redistest"
	"headcount/recorder"
)

// manyPlays are n plays, each by a viewer of its own, of the videos in turn.
func manyPlays(n, videos int) (videoIDs, viewerIDs []string) {
	for i := range n {
		videoIDs = append(videoIDs, fmt.Sprintf("v%d", i%videos))
		viewerIDs = append(viewerIDs, fmt.Sprintf("u%d", i))
	}
	return videoIDs, viewerIDs
}

func TestPlayAllStoresRedisTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.now(t)
	recordedAt, errs := f.PlayAll(t.Context(), []string{"a", "b", "a", "b"}, []string{"u1", "u1", "u2", "u1"})
	if after := f.now(t).Unix(); recordedAt < before.Unix() || recordedAt > after {
		t.Errorf("PlayAll = %d, want Redis's time, %d to %d", recordedAt, before.Unix(), after)
	}
	if diff := cmp.Diff([]error{nil, nil, nil, nil}, errs); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	for video, viewers := range map[string][]string{"a": {"u1", "u2"}, "b": {"u1"}} {
		got := f.viewers(t, video)
		for _, viewer := range viewers {
			if at, err := strconv.ParseInt(got[viewer], 10, 64); err != nil || at < before.Unix() || at > recordedAt {
				t.Errorf("%s was seen at %q in %s, want %d to %d", viewer, got[viewer], video, before.Unix(), recordedAt)
			}
		}
		if len(got) != len(viewers) {
			t.Errorf("viewers of %s = %v, want %q", video, got, viewers)
		}
		f.wantCount(t, video, strconv.Itoa(len(viewers)))
		f.wantTTL(t, f.online(video), before, keyTTL, keyTTL)
	}
}

func TestPlayAllOfNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if recordedAt, errs := f.PlayAll(t.Context(), nil, nil); recordedAt != 0 || len(errs) != 0 {
		t.Errorf("PlayAll of none = %d, %v, want nothing", recordedAt, errs)
	}
	f.wantNoKeys(t)
}

func TestPlayAllRejectsBadIDsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	videos := []string{"a", "", "a", "count:zz", "a"}
	viewers := []string{"u1", "u2", "", "u4", "u5"}
	recordedAt, errs := f.PlayAll(t.Context(), videos, viewers)
	if recordedAt == 0 {
		t.Errorf("PlayAll = 0, want the time of those recorded")
	}
	for i, field := range []string{"", "video_id", "viewer_id", "video_id", ""} {
		var bad *keys.IDError
		switch {
		case field == "" && errs[i] != nil:
			t.Errorf("play %d: %v, want it recorded", i, errs[i])
		case field != "" && (!errors.As(errs[i], &bad) || bad.Field != field):
			t.Errorf("play %d: %v, want a *keys.IDError of %s", i, errs[i], field)
		}
	}
	got := f.viewers(t, "a")
	if _, first := got["u1"]; !first || got["u5"] == "" || len(got) != 2 {
		t.Errorf("hash = %v, want u1 and u5", got)
	}

	if recordedAt, errs = f.PlayAll(t.Context(), []string{""}, []string{"u1"}); recordedAt != 0 || errs[0] == nil {
		t.Errorf("PlayAll of bad ids only = %d, %v, want an error", recordedAt, errs)
	}
}

func TestPlayAllIsTakenAllOrNotAtAll(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	f := newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience, Queue: 4, Registerer: reg})
	b := f.newBatch(t)
	b.play(t, "10001", "u1")
	b.play(t, "10001", "u2")

	recordedAt, errs := f.PlayAll(t.Context(), []string{"a", "b", "", "c"}, []string{"u", "u", "u", "u"})
	if recordedAt != 0 {
		t.Errorf("PlayAll = %d, want 0", recordedAt)
	}
	for i, err := range errs {
		var bad *keys.IDError
		if i == 2 && !errors.As(err, &bad) {
			t.Errorf("play %d: %v, want a *keys.IDError", i, err)
		} else if i != 2 && !errors.Is(err, recorder.ErrBusy) {
			t.Errorf("play %d: %v, want %v", i, err, recorder.ErrBusy)
		}
	}
	if got := f.Queued(); got != 2 {
		t.Errorf("queued = %d, want 2 as before", got)
	}
	want := `
# HELP headcount_record_queue_length Plays and leaves that wait for the next write.
# TYPE headcount_record_queue_length gauge
headcount_record_queue_length 2
# HELP headcount_record_queue_limit Plays and leaves that may wait; more are refused as busy.
# TYPE headcount_record_queue_limit gauge
headcount_record_queue_limit 4
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "headcount_record_queue_length", "headcount_record_queue_limit"); err != nil {
		t.Error(err)
	}
	b.add(t, func() {
		for i, err := range second(f.PlayAll(t.Context(), []string{"", "d"}, []string{"u", "u"})) { // for which there is room: a bad one takes none
			if (err == nil) != (i == 1) {
				t.Errorf("play %d when there is room: %v", i, err)
			}
		}
	})
	b.write()
	for video, want := range map[string]int{"10001": 2, "a": 0, "b": 0, "c": 0, "d": 1} {
		if got := f.viewers(t, video); len(got) != want {
			t.Errorf("viewers of %s = %v, want %d", video, got, want)
		}
	}
}

func second(_ int64, errs []error) []error { return errs }

func TestPlayAllWhileRedisStalls(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	f.mustPlay(t, "v0", "u0")
	f.server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	videos, viewers := manyPlays(10, 3)
	videos[4] = ""
	start := time.Now()
	recordedAt, errs := f.PlayAll(ctx, videos, viewers)
	if took := time.Since(start); took > patience/3 {
		t.Errorf("PlayAll took %v, its deadline was 50 ms", took)
	}
	for i, err := range errs {
		if i != 4 && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("play %d while Redis stalls: %v, want %v", i, err, context.DeadlineExceeded)
		}
	}
	if recordedAt != 0 {
		t.Errorf("PlayAll = %d, want 0", recordedAt)
	}
	f.server.Resume(t)
	f.mustPlay(t, "v0", "u0")
}

func TestPlayAllFailsForOneVideoOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.db.RPush(t.Context(), f.online("v1"), "foreign").Err(); err != nil {
		t.Fatalf("RPUSH: %v", err)
	}
	videos, viewers := manyPlays(8, 3) // the last one is of v1
	recordedAt, errs := f.PlayAll(t.Context(), videos, viewers)
	if recordedAt == 0 {
		t.Errorf("PlayAll = 0, want the time of those recorded")
	}
	for i, err := range errs {
		if foreign := i%3 == 1; foreign != redis.HasErrorPrefix(err, "WRONGTYPE") || (!foreign && err != nil) {
			t.Errorf("play %d of %s: %v", i, videos[i], err)
		}
	}
	for video, want := range map[string]int{"v0": 3, "v2": 2} {
		if got := f.viewers(t, video); len(got) != want {
			t.Errorf("viewers of %s = %v, want %d", video, got, want)
		}
	}
}

func TestPlayAllTakesACallForEachVideo(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	f.warm(t)
	videos, viewers := manyPlays(1000, 20)
	_, errs := f.PlayAll(t.Context(), videos, viewers)
	if err := errors.Join(errs...); err != nil {
		t.Errorf("PlayAll: %v", err)
	}
	if got := scriptCalls(t, f.server); got != 20 {
		t.Errorf("script calls = %d, want 20: one for each video", got)
	}
	for i := range 20 {
		f.wantCount(t, fmt.Sprintf("v%d", i), "50")
	}
}

func TestPlayAllIsCountedByPlay(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience, Queue: 4, Registerer: reg})
	f.PlayAll(t.Context(), []string{"a", "a", "", "b"}, []string{"u1", "u2", "u3", ""})                   // 2 recorded, 2 rejected
	f.PlayAll(t.Context(), []string{"a", "b", "c", "d", "e", ""}, []string{"u", "u", "u", "u", "u", "u"}) // 5 busy, 1 rejected
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	f.PlayAll(gone, []string{"a", "a", "a"}, []string{"u1", "u2", "u3"}) // 3 abandoned
	eventually(t, "the recorder is idle", f.Idle)
	if err := f.db.Set(t.Context(), f.online("foreign"), "a string", 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	f.PlayAll(t.Context(), []string{"a", "foreign"}, []string{"u1", "u1"}) // 1 recorded, 1 failed

	want := `
# HELP headcount_plays_total Plays by outcome: recorded, rejected (bad id), full (the video has as many viewers as it may), busy (queue full), abandoned (the caller went away), failed (Redis refused, or took too long).
# TYPE headcount_plays_total counter
headcount_plays_total{outcome="abandoned"} 3
headcount_plays_total{outcome="busy"} 5
headcount_plays_total{outcome="failed"} 1
headcount_plays_total{outcome="full"} 0
headcount_plays_total{outcome="recorded"} 3
headcount_plays_total{outcome="rejected"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "headcount_plays_total"); err != nil {
		t.Error(err)
	}
}

// An outage is told in one line; one video's foreign key is none.
func TestAnOutageIsLoggedWithoutIDs(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	f := newFixtureOn(t, redistest.Start(t, "--maxmemory-policy", "noeviction"), recorder.Options{Timeout: patience, Logger: zap.New(core)})
	if err := f.db.Set(t.Context(), f.online("foreign"), "a string", 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	f.PlayAll(t.Context(), []string{"foreign", "good"}, []string{"secret", "secret"})
	eventually(t, "the recorder is idle", f.Idle)
	if got := logs.TakeAll(); len(got) != 0 {
		t.Errorf("logged %v, want nothing", got)
	}

	f.limitMemory(t, "1")
	for range 2 {
		f.PlayAll(t.Context(), []string{"good", "fine"}, []string{"secret", "secret"})
	}
	eventually(t, "the recorder is idle", f.Idle)
	got := logs.TakeAll()
	if len(got) != 1 || got[0].Level != zap.WarnLevel {
		t.Fatalf("logged %v, want one warning", got)
	}
	if diff := cmp.Diff(map[string]any{"reason": "OOM"}, got[0].ContextMap()); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
