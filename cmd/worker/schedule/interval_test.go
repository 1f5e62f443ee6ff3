package schedule

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIntervalRunsFromEndToStart(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(t, 30*time.Second, lasting(5*time.Second))
		b.advance(2 * time.Minute)
		want := []time.Duration{0, 35 * time.Second, 70 * time.Second, 105 * time.Second}
		if diff := cmp.Diff(want, w.starts); diff != "" {
			t.Errorf("starts of passes (-want +got):\n%s", diff)
		}
	})
}

func TestMissedIntervalsAreOnePass(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		const interval = time.Second
		w := b.start(t, interval, func(ctx context.Context, n int) error {
			if n == 1 {
				return lasting(10*interval)(ctx, n)
			}
			return nil
		})
		b.advance(12*interval + interval/2)
		want := []time.Duration{0, 11 * interval, 12 * interval}
		if diff := cmp.Diff(want, w.starts); diff != "" {
			t.Errorf("starts of passes after one that took ten intervals (-want +got):\n%s", diff)
		}
	})
}

func TestIntervalChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(t, time.Hour, lasting(0))
		b.advance(time.Minute)
		w.setInterval(10 * time.Second)
		b.advance(95 * time.Second)
		want := []time.Duration{0, 70 * time.Second, 80 * time.Second, 90 * time.Second}
		if diff := cmp.Diff(want, w.starts); diff != "" {
			t.Errorf("starts of passes (-want +got):\n%s", diff)
		}
	})
}

// A reload that changes another key does not put the next pass off.
func TestIntervalThatStaysTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.start(t, time.Minute, lasting(0))
		b.advance(40 * time.Second)
		w.setInterval(time.Minute)
		b.advance(90 * time.Second)
		if diff := cmp.Diff([]time.Duration{0, time.Minute}, w.starts); diff != "" {
			t.Errorf("starts of passes (-want +got):\n%s", diff)
		}
	})
}

func TestIntervalChangesWithinAPass(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var cut error
		w := b.start(t, time.Hour, func(ctx context.Context, n int) error {
			if n > 1 {
				return nil
			}
			err := lasting(time.Minute)(ctx, n)
			cut = ctx.Err()
			return err
		})
		b.advance(time.Second)
		w.setInterval(10 * time.Second)
		w.setInterval(20 * time.Second)
		b.advance(2*time.Minute - time.Second)
		if cut != nil {
			t.Errorf("the running pass was cut short: %v", cut)
		}
		want := []time.Duration{0, 80 * time.Second, 100 * time.Second}
		if diff := cmp.Diff(want, w.starts); diff != "" {
			t.Errorf("starts of passes (-want +got):\n%s", diff)
		}
	})
}

// A standby that is told a new interval makes its first pass at once all the
// same when it comes to lead. Several times, as chance would have it whether a
// schedule that ended at once made a pass.
func TestIntervalChangesWhileStandingBy(t *testing.T) {
	for i := range 25 {
		t.Run(strconv.Itoa(i), testIntervalChangesWhileStandingBy)
	}
}

func testIntervalChangesWhileStandingBy(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		holder := b.start(t, time.Minute, lasting(0))
		holder.waitFor(t, leads)
		w := b.start(t, time.Minute, lasting(time.Second))
		w.waitFor(t, standsBy)
		w.setInterval(2 * time.Minute)

		holder.stop()
		<-holder.ended
		stopped := b.since()
		b.advance(stopped + 3*time.Minute)
		if len(w.starts) != 2 {
			t.Fatalf("%d passes in three minutes, want 2", len(w.starts))
		}
		if after := w.starts[0] - stopped; after > retry {
			t.Errorf("the first pass came after %s, want within %s", after, retry)
		}
		if got, want := w.starts[1]-w.starts[0], 2*time.Minute+time.Second; got != want {
			t.Errorf("the second pass came %s after the first, want %s", got, want)
		}
	})
}

func TestTwoWorkersMakeOnePassPerInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		const interval, took, passes = 2 * time.Second, 100 * time.Millisecond, 100
		a := b.start(t, interval, lasting(took))
		b.advance(interval / 2)
		standby := b.start(t, interval, lasting(took))
		b.advance(passes*(interval+took) - 1)

		var want []time.Duration
		for at := time.Duration(0); len(want) < passes; at += interval + took {
			want = append(want, at)
		}
		if diff := cmp.Diff(want, a.starts); diff != "" {
			t.Errorf("the holder's passes (-want +got):\n%s", diff)
		}
		if len(standby.starts) > 0 {
			t.Errorf("the standby made %d passes, want none", len(standby.starts))
		}
	})
}
