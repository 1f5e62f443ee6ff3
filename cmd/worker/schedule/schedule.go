// Package schedule is the worker's service: it makes passes on a schedule while
// it holds the lease, and stands by while another worker does.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headcount/aggregator"
	"headcount/cmd/internal/admin"
	"headcount/cmd/internal/program"
	"headcount/internal/config"
	"headcount/internal/ops"
	"headcount/lock"
)

// passer makes a pass for as long as it may write; *aggregator.Aggregator does.
type passer interface {
	PassWhile(ctx context.Context, mayWrite func() bool) (aggregator.Summary, error)
}

// counted is a kind of videos of which passes are made.
type counted struct {
	log *zap.Logger
	passer
}

// worker makes passes of all kinds while it holds the lease.
type worker struct {
	log      *zap.Logger
	lease    *lock.Lease
	kinds    []counted
	interval atomic.Int64  // time.Duration from the end of a pass to the start of the next
	changed  chan struct{} // the interval has changed; holds one
	held     prometheus.Gauge
	alone    prometheus.Counter // passes made without the lease
	leading  atomic.Bool
	full     bool // the last try for the lease found Redis full
}

func newWorker(log *zap.Logger, lease *lock.Lease, kinds []counted, interval time.Duration, reg prometheus.Registerer) *worker {
	w := &worker{log: log, lease: lease, kinds: kinds, changed: make(chan struct{}, 1)}
	w.interval.Store(int64(interval))
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headcount_worker_interval_seconds",
		Help: "Pause between the end of a pass and the start of the next: worker.interval as it is in force.",
	}, func() float64 { return time.Duration(w.interval.Load()).Seconds() })
	w.held = promauto.With(reg).NewGauge(prometheus.GaugeOpts{
		Name: "headcount_lease_held",
		Help: "1 while this worker holds the lease and makes the passes, 0 while it stands by.",
	})
	w.alone = promauto.With(reg).NewCounter(prometheus.CounterOpts{
		Name: "headcount_passes_without_lease_total",
		Help: "Passes made although nobody could get the lease, because Redis was out of memory.",
	})
	return w
}

// Service makes passes until ctx ends.
func Service(ctx context.Context, p *program.Program) error {
	d, err := connect(p)
	if err != nil {
		return err
	}
	defer d.close()

	w := newWorker(p.Log, d.lease, d.kinds, p.Config.Config().Worker.Interval, p.Metrics)
	p.OnChange(func(c config.Config) { w.setInterval(c.Worker.Interval) })
	ready := ops.NewReadiness(map[string]ops.Check{
		"redis": program.RedisCheck(d.redis),
		"lease": w.leaseState,
	})
	handler, err := admin.New(p, ready)
	if err != nil {
		return err
	}
	defer handler.Close()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return w.lead(ctx) })
	running.Go(func() error {
		return ops.Serve(ctx, p.Log, ready, p.Server(ops.Server{
			Name:    "admin",
			Addr:    p.Config.Config().Worker.AdminListen,
			Handler: handler,
		}))
	})
	return running.Wait()
}

// leaseState: a standby is as ready as the leader.
func (w *worker) leaseState(context.Context) (string, error) {
	if w.leading.Load() {
		return "held", nil
	}
	return "standby", nil
}

// lead holds the lease for as long as it can, again and again, until ctx ends.
func (w *worker) lead(ctx context.Context) error {
	for ctx.Err() == nil {
		term, err := w.lease.Wait(ctx, w.reportWaiting)
		if errors.Is(err, lock.ErrFull) {
			w.passWithoutLease(ctx)
			continue
		}
		if term == nil {
			break // ctx ended: told to stop, which is not an error
		}
		w.full = false
		w.setLeading(true)
		w.log.Info("leading: this worker holds the lease and makes the passes")
		err = w.makePasses(term)
		w.setLeading(false)
		w.release(term)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) release(term *lock.Term) {
	ended := context.Cause(term.Context()) // Release ends it too
	err := term.Release()
	switch {
	case errors.Is(ended, lock.ErrLost):
		w.log.Warn("the lease was lost", zap.Error(ended))
	case err != nil:
		w.log.Warn("the lease could not be released; it expires by itself", zap.Error(err))
	default:
		w.log.Info("the lease is released")
	}
}

func (w *worker) reportWaiting(err error) {
	if errors.Is(err, lock.ErrHeld) {
		w.log.Info("standing by: another worker holds the lease")
		return
	}
	w.log.Warn("cannot ask for the lease", zap.Error(err))
}

func (w *worker) setLeading(leading bool) {
	w.leading.Store(leading)
	w.held.Set(0)
	if leading {
		w.held.Set(1)
	}
}

func (w *worker) setInterval(interval time.Duration) {
	if w.interval.Swap(int64(interval)) == int64(interval) {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default: // a change is noted already; whoever sees it reads the newest interval
	}
}

// makePasses makes a pass at once, and then one every interval, until the term ends.
func (w *worker) makePasses(term *lock.Term) error {
	select {
	case <-w.changed: // while standing by: there is no schedule yet that would have to end
	default:
	}
	for first := true; term.Context().Err() == nil; first = false {
		if err := w.passEvery(term, time.Duration(w.interval.Load()), first); err != nil {
			return err
		}
	}
	return nil
}

// passEvery makes passes until the term ends or the interval changes, and returns
// when the last of them is over. The interval runs from the end of a pass to
// the start of the next: a slow pass delays the next, they never pile up.
func (w *worker) passEvery(term *lock.Term, interval time.Duration, atOnce bool) error {
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	turn := make(chan struct{}, 1) // full while a pass runs
	over := make(chan struct{})
	task := gocron.NewTask(func() {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			_ = w.pass(term.Context(), term.Held) // it has logged its error
		case <-over:
		}
	})
	if _, err := scheduler.NewJob(gocron.DurationJob(interval), task, jobOptions(atOnce)...); err != nil {
		return fmt.Errorf("schedule: %w", errors.Join(err, scheduler.Shutdown()))
	}
	scheduler.Start()
	select {
	case <-term.Context().Done():
	case <-w.changed:
	}
	// Shutdown would wait for a running pass in a loop that takes a whole
	// processor, and not for long; so wait first, and let no other one start.
	close(over)
	turn <- struct{}{}
	if err := scheduler.Shutdown(); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return nil
}

func jobOptions(atOnce bool) []gocron.JobOption {
	options := []gocron.JobOption{
		gocron.WithName("pass"),
		gocron.WithSingletonMode(gocron.LimitModeReschedule),
		gocron.WithIntervalFromCompletion(),
	}
	if atOnce {
		options = append(options, gocron.WithStartAt(gocron.WithStartImmediately()))
	}
	return options
}

// pass makes a pass of each kind, one after another: they share a Redis. What fails
// in one does not keep the next from being counted.
func (w *worker) pass(ctx context.Context, mayWrite func() bool) error {
	var errs []error
	for _, k := range w.kinds {
		err := k.pass(ctx, mayWrite)
		errs = append(errs, err)
		if errors.Is(err, aggregator.ErrCutShort) { // as the next would be
			break
		}
	}
	return errors.Join(errs...)
}

var errPanicked = errors.New("a pass panicked")

// pass makes one pass and logs it in one line. mayWrite is asked before each of
// its writes: after this process was stopped for longer than a lease lasts, the
// next write may come before the timer that ends ctx.
func (k counted) pass(ctx context.Context, mayWrite func() bool) (err error) {
	defer func() { // or it would end the process
		if recovered := recover(); recovered != nil {
			k.log.Error("a pass panicked; the next one runs as scheduled",
				zap.Any("panic", recovered), zap.ByteString("stack", debug.Stack()))
			err = errPanicked
		}
	}()
	sum, err := k.PassWhile(ctx, mayWrite)
	k.report(sum, err)
	return err
}

func (k counted) report(sum aggregator.Summary, err error) {
	fields := []zap.Field{
		zap.Int64("videos", sum.Videos),
		zap.Int64("viewers", sum.Viewers),
		zap.Int64("read", sum.Read),
		zap.Int64("skipped", sum.Skipped),
		zap.Int64("evicted", sum.Evicted),
		zap.Duration("took", sum.Took.Round(100*time.Microsecond)),
	}
	rare := func(name string, n int64) { // worth reading only when it happens
		if n > 0 {
			fields = append(fields, zap.Int64(name, n))
		}
	}
	rare("invalid", sum.Invalid)
	rare("healed", sum.Healed)
	rare("foreign", sum.Foreign)
	rare("errors", sum.Errors)
	switch {
	case err == nil:
		k.log.Info("pass complete", fields...)
	case errors.Is(err, aggregator.ErrCutShort):
		k.log.Info("pass cut short", append(fields, zap.Error(err))...)
	default:
		k.log.Warn("pass partial: what failed keeps its earlier count", append(fields, zap.Error(err))...)
	}
}
