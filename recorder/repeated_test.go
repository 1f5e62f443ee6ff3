package recorder_test

import (
	"sync/atomic"
	"testing"
	"time"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/recorder"
)

// starts adds up how often videos were started.
type starts struct{ atomic.Int64 }

func (s *starts) Add(_ time.Time, _ string, n int64) { s.Int64.Add(n) }
func (s *starts) Calls() []*redisclient.ScriptCall   { return nil }
func (s *starts) Settle()                            {}
func (s *starts) Pending() bool                      { return false }

// TestPlayBehindAnUnknownLeaveCounts: where Redis does not know the leave's script, the play behind it on the same video
// is carried out twice, and the second time finds its viewer there.
func TestPlayBehindAnUnknownLeaveCounts(t *testing.T) {
	t.Parallel()
	plays := new(starts)
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{
		Timeout: patience, Window: 10 * time.Minute, Statistics: recorder.Statistics{Plays: plays},
	})
	f.mustPlay(t, "10001", "u1")
	b := f.newBatch(t)
	b.leave(t, "10001", "u2", 0)
	b.play(t, "10001", "u3")
	before := plays.Load()
	b.write()
	if got, want := plays.Load()-before, int64(2); got != want { // u3's, and the one that held the batch up
		t.Errorf("plays = %d, want %d", got, want)
	}
}

// TestPlayBehindAnUnknownLeaveCountsOnce: the leave takes away again whom the first run has recorded, so both runs find
// that the viewer starts.
func TestPlayBehindAnUnknownLeaveCountsOnce(t *testing.T) {
	t.Parallel()
	plays := new(starts)
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{
		Timeout: patience, Window: 10 * time.Minute, Statistics: recorder.Statistics{Plays: plays},
	})
	b := f.newBatch(t)
	b.leave(t, "10001", "u1", 0)
	b.play(t, "10001", "u1")
	b.write()
	if got, want := plays.Load(), int64(2); got != want { // u1's, and the one that held the batch up
		t.Errorf("plays = %d, want %d", got, want)
	}
}

// TestFirstViewerBehindAnUnknownLeaveShowsAtOnce: the second run finds the viewer there, whom the first has added.
func TestFirstViewerBehindAnUnknownLeaveShowsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience, Window: 10 * time.Minute})
	b := f.newBatch(t)
	b.leave(t, "10001", "u2", 0)
	b.play(t, "10001", "u1")
	b.write()
	f.wantCount(t, "10001", "1")
}
