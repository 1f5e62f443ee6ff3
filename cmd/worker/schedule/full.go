package schedule

import (
	"context"
	"time"

	"github.com/google/uuid"
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
	w.passAlone(ctx)
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(w.interval.Load())):
	}
}

// withoutLease lets a pass write that nobody else can have the right to.
func withoutLease() bool { return true }

// passAlone makes a pass outside the schedule, which would see to a panic.
func (w *worker) passAlone(ctx context.Context) {
	defer func() {
		if recovered := recover(); recovered != nil {
			w.reportPanic(uuid.Nil, "pass", recovered)
		}
	}()
	w.alone.Inc()
	_ = w.pass(ctx, withoutLease) // it has logged its error
}
