package recorder_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headcount/internal/redistest"
	"headcount/recorder"
)

func TestOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: 300 * time.Millisecond, Registerer: reg})
	// recorded
	recordedAt := f.mustPlay(t, "10001", "u1")
	f.mustPlay(t, "10001", "u2")
	f.mustLeave(t, "10001", "u1", recordedAt)
	// rejected
	_, _ = f.Play(t.Context(), "count:zz", "u1")
	_ = f.Leave(t.Context(), "10001", "", 0)
	// failed: Redis refuses
	f.db.Set(t.Context(), f.online("foreign"), "a string", 0)
	_, _ = f.Play(t.Context(), "foreign", "u1")
	_ = f.Leave(t.Context(), "foreign", "u1", 0)
	// abandoned
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("a cause of the caller's"))
	_, _ = f.Play(gone, "10001", "u3")
	_ = f.Leave(gone, "10001", "u3", 0)
	eventually(t, "the recorder is idle", f.Idle)
	// failed: Redis stalls, and the caller is still there
	f.server.Pause(t)
	_, _ = f.Play(t.Context(), "10001", "u1")
	f.server.Resume(t)

	want := `
# HELP headcount_plays_total Plays by outcome: recorded, rejected (bad id), full (the video has as many viewers as it may), busy (queue full), abandoned (the caller went away), failed (Redis refused, or took too long).
# TYPE headcount_plays_total counter
headcount_plays_total{outcome="abandoned"} 1
headcount_plays_total{outcome="busy"} 0
headcount_plays_total{outcome="failed"} 2
headcount_plays_total{outcome="full"} 0
headcount_plays_total{outcome="recorded"} 2
headcount_plays_total{outcome="rejected"} 1
# HELP headcount_leaves_total Leaves by outcome, as for plays.
# TYPE headcount_leaves_total counter
headcount_leaves_total{outcome="abandoned"} 1
headcount_leaves_total{outcome="busy"} 0
headcount_leaves_total{outcome="failed"} 1
headcount_leaves_total{outcome="recorded"} 1
headcount_leaves_total{outcome="rejected"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "headcount_plays_total", "headcount_leaves_total"); err != nil {
		t.Error(err)
	}
}

func TestBusyIsCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	f := newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience, Queue: 1, Registerer: reg})
	b := f.newBatch(t)
	b.play(t, "10001", "u1")
	_, _ = f.Play(t.Context(), "10001", "u2")
	_ = f.Leave(t.Context(), "10001", "u1", 0)
	b.write()

	want := `
# HELP headcount_plays_total Plays by outcome: recorded, rejected (bad id), full (the video has as many viewers as it may), busy (queue full), abandoned (the caller went away), failed (Redis refused, or took too long).
# TYPE headcount_plays_total counter
headcount_plays_total{outcome="abandoned"} 0
headcount_plays_total{outcome="busy"} 1
headcount_plays_total{outcome="failed"} 0
headcount_plays_total{outcome="full"} 0
headcount_plays_total{outcome="recorded"} 2
headcount_plays_total{outcome="rejected"} 0
# HELP headcount_leaves_total Leaves by outcome, as for plays.
# TYPE headcount_leaves_total counter
headcount_leaves_total{outcome="abandoned"} 0
headcount_leaves_total{outcome="busy"} 1
headcount_leaves_total{outcome="failed"} 0
headcount_leaves_total{outcome="recorded"} 0
headcount_leaves_total{outcome="rejected"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "headcount_plays_total", "headcount_leaves_total"); err != nil {
		t.Error(err)
	}
}

func TestBatchSizesAndDurationsAreObserved(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	f := newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience, Registerer: reg})
	b := f.newBatch(t)
	for _, viewer := range []string{"u1", "u2", "u3"} {
		b.play(t, "10001", viewer)
	}
	b.leave(t, "10001", "u1", 0)
	b.write()

	families, err := reg.Gather()
	if err != nil {
		t.Fatalf("Gather: %v", err)
	}
	type observed struct {
		count uint64
		sum   float64
	}
	got := make(map[string]observed)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				got[name] = observed{h.GetSampleCount(), h.GetSampleSum()}
			}
		}
	}
	if got, want := got["headcount_record_batch_size"], (observed{2, 1 + 4}); got != want {
		t.Errorf("batch sizes = %v, want %v: one play, then four requests", got, want)
	}
	for name, want := range map[string]uint64{"headcount_record_duration_seconds play": 4, "headcount_record_duration_seconds leave": 1} {
		if got := got[name]; got.count != want || got.sum <= 0 {
			t.Errorf("%s = %v, want %d observations", name, got, want)
		}
	}
}

func TestMetricsPassTheLinter(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	f := newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience, Registerer: reg})
	f.mustPlay(t, "10001", "u1")
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("GatherAndLint = %v, %v, want no problem", problems, err)
	}
}
