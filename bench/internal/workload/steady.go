package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/report"
	"headcount/bench/internal/server"
	"headcount/internal/keys"
	"headcount/recorder"
)

const (
	steadyVideos  = 100_000
	steadyViewers = 1_000_000 // at any time
	warmUp        = dataset.Window + 2*dataset.Beat
	steadyTime    = time.Hour
	quickTime     = 5 * time.Minute
)

// hour is a server whose hour passes as fast as it can be filled.
type hour struct {
	*stage
	clock       *server.Clock
	audience    *audience
	ours, floor passer
}

// passer is a contender that goes on from pass to pass, with its measures.
type passer struct {
	kind    contender.Kind
	c       contender.Contender
	trips   atomic.Int64
	samples []sample
}

// steady has a recorder write what an audience does, second by second, and both
// our worker and the floor make a pass every interval.
func steady(ctx context.Context, r *Runner) (_ report.Table, err error) {
	clock, err := server.NewClock(ctx)
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, clock.Close()) }()
	srv, err := server.Start(ctx, clock.Env()...)
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()

	h := &hour{stage: &stage{r: r, srv: srv}, clock: clock}
	defer func() { err = errors.Join(err, h.close()) }()
	if err := h.open(); err != nil {
		return report.Table{}, err
	}
	if err := h.run(ctx); err != nil {
		return report.Table{}, err
	}
	return h.table(), nil
}

func (h *hour) open() error {
	for name, p := range map[string]*passer{"ours": &h.ours, "floor": &h.floor} {
		var err error
		if p.kind, err = contender.Find(name); err != nil {
			return err
		}
		if p.c, err = p.kind.New(h.srv.Addr, h.set, &p.trips); err != nil {
			return err
		}
	}
	rec := recorder.New(h.srv.Admin, recorder.Options{
		Keys: keys.New("video"), KeyTTL: dataset.KeyTTL, CountTTL: dataset.CountTTL, Timeout: time.Minute,
	})
	h.audience = newAudience(rec, h.r.sized(steadyViewers), h.r.sized(steadyVideos), h.clock.Now())
	return nil
}

func (h *hour) close() error {
	var errs []error
	for _, p := range []*passer{&h.ours, &h.floor} {
		if p.c != nil {
			errs = append(errs, p.c.Close())
		}
	}
	return errors.Join(errs...)
}

// run lets the time pass. What is measured while the audience builds up and the
// first of it becomes stale is thrown away.
func (h *hour) run(ctx context.Context) error {
	length := steadyTime
	if h.r.Quick {
		length = quickTime
	}
	bar := h.r.bar(int64((warmUp+length)/time.Second), "seconds of a steady hour")
	for passed := time.Duration(0); passed < warmUp+length; passed += dataset.Interval {
		if passed == warmUp {
			h.ours.samples, h.floor.samples = nil, nil
		}
		for range dataset.Interval / time.Second {
			if err := errors.Join(h.clock.Advance(time.Second), h.audience.second(ctx, h.clock.Now())); err != nil {
				return err
			}
			_ = bar.Add(1)
		}
		if err := h.passes(ctx, passed/dataset.Interval%2 == 0); err != nil {
			return err
		}
	}
	return bar.Finish()
}

// passes has both make a pass; who is first changes, as ours evicts.
func (h *hour) passes(ctx context.Context, oursFirst bool) error {
	both := []*passer{&h.ours, &h.floor}
	if !oursFirst {
		slices.Reverse(both)
	}
	for _, p := range both {
		s, err := h.measure(ctx, p.kind, p.c, &p.trips)
		if err != nil {
			return err
		}
		p.samples = append(p.samples, s)
	}
	got, want := h.ours.samples[len(h.ours.samples)-1].viewers, h.audience.watching(h.clock.Now())
	if got != want {
		return fmt.Errorf("ours counted %d viewers, want %d", got, want)
	}
	return nil
}

func (h *hour) table() report.Table {
	ours, floor := means(h.ours.samples), means(h.floor.samples)
	last := h.ours.samples[len(h.ours.samples)-1].viewers
	return report.Table{
		Workload: "steady",
		About: fmt.Sprintf("%d viewers at a time over %d videos (Zipf %v), %d counted at the end; a beat every %v, stays of %v on average, %d %% leave and the others vanish; means of %d passes, one every %v",
			len(h.audience.here), h.r.sized(steadyVideos), zipf, last, dataset.Beat, meanStay, leavingOf10*10, len(h.ours.samples), dataset.Interval),
		Columns: passColumns,
		Rows:    []report.Row{passRow("ours", ours, floor), passRow("floor", floor, floor)},
		Bars:    []report.Bar{{Measure: "Redis CPU per pass, ours ÷ floor", Value: ours.cpu / floor.cpu, Limit: 0.8}},
	}
}

// means are those of all passes: where one in twenty does the work of many, a
// median would not show it. A server whose clock stands still times no commands.
func means(samples []sample) figures {
	f := figures{longest: report.None()}
	for _, s := range samples {
		f.wall += report.MS(s.wall) / float64(len(samples))
		f.cpu += report.MS(s.cpu) / float64(len(samples))
		f.trips += float64(s.trips) / float64(len(samples))
	}
	return f
}
