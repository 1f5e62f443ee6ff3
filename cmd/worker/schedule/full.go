package schedule

import (
	"context"
	"time"
)

const fullMessage = "Redis is full and takes no lease: this worker makes passes without it, which free memory"

// passWithoutLease makes a pass although nobody can get the lease, and pauses for an interval. A full Redis takes no
// lease, and it is the pass that gives memory back, by evicting. Other workers may do the same: passes at once give
// the same counts, and the lease only saves work.
func (w *worker) passWithoutLease(ctx context.Context) {
	if !w.full {
		w.full = true
		w.log.Warn(fullMessage)
	}
	w.alone.Inc()
	_ = w.pass(ctx, withoutLease) // it has logged its error
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(w.interval.Load())):
	}
}

// withoutLease lets a pass write that nobody else can have the right to.
func withoutLease() bool { return true }
