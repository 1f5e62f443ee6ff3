package recorder_test

import (
	"testing"
	"time"

	"headcount/internal/redistest"
	"headcount/recorder"
)

// A viewer whose page was reloaded has left and is back: watching, and no further start.
func TestResumedPlayIsNoStart(t *testing.T) {
	t.Parallel()
	plays := new(starts)
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{
		Timeout: patience, Window: 10 * time.Minute, Statistics: recorder.Statistics{Plays: plays},
	})
	recordedAt := f.mustPlay(t, "10001", "u1")
	f.mustLeave(t, "10001", "u1", recordedAt)
	again, err := f.Resume(t.Context(), "10001", "u1")
	if err != nil || again < recordedAt {
		t.Fatalf("Resume = %d, %v; want %d or later", again, err, recordedAt)
	}
	f.wantViewers(t, "10001", "u1")
	f.wantCount(t, "10001", "1")
	if got := plays.Load(); got != 1 {
		t.Errorf("plays = %d, want 1", got)
	}
	f.mustPlay(t, "10001", "u1") // a beat
	f.mustLeave(t, "10001", "u1", 0)
	f.mustPlay(t, "10001", "u1")
	if got := plays.Load(); got != 2 {
		t.Errorf("plays after coming back = %d, want 2", got)
	}
}

// Those who travel with a resumed play are counted as ever.
func TestResumedPlayAmongOthers(t *testing.T) {
	t.Parallel()
	plays := new(starts)
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{
		Timeout: patience, Window: 10 * time.Minute, Statistics: recorder.Statistics{Plays: plays},
	})
	b := f.newBatch(t)
	b.play(t, "10001", "u1")
	b.add(t, func() {
		if _, err := f.Resume(t.Context(), "10001", "u2"); err != nil {
			t.Errorf("Resume: %v", err)
		}
	})
	b.play(t, "10001", "u3")
	b.play(t, "10001", "u2")
	b.write()
	f.wantViewers(t, "10001", "u1", "u2", "u3")
	if got, want := plays.Load(), int64(3); got != want { // u1's, u3's, and the one that held the batch up
		t.Errorf("plays = %d, want %d", got, want)
	}
}
