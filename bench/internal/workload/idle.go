package workload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/report"
)

// passColumns are for tables whose rows are not all contenders.
var passColumns = []report.Column{
	{Key: "wall_ms", Title: "wall ms"},
	{Key: "redis_cpu_ms", Title: "Redis CPU ms"},
	{Key: "redis_cpu_to_floor", Title: "÷floor"},
	{Key: "longest_ms", Title: "longest ms"},
	{Key: "round_trips", Title: "round trips"},
}

// passRow is a row under passColumns.
func passRow(name string, f, floor figures) report.Row {
	return report.Row{Name: name, Figures: []float64{f.wall, f.cpu, f.cpu / floor.cpu, f.longest, f.trips}}
}

// idle compares our second pass, when nothing has changed since the first and
// nobody can be stale, with the floor on the same data.
func idle(ctx context.Context, r *Runner) (_ report.Table, err error) {
	s, err := r.stage(ctx, contender.Hashes, r.manyVideos())
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, s.srv.Close()) }()

	var first, next, floor []sample
	for range r.Repetitions {
		if err := s.restore(ctx); err != nil {
			return report.Table{}, err
		}
		ours, err := s.passes(ctx, "ours", 2)
		if err != nil {
			return report.Table{}, err
		}
		read, err := s.passes(ctx, "floor", 1)
		if err != nil {
			return report.Table{}, err
		}
		first, next, floor = append(first, ours[0]), append(next, ours[1]), append(floor, read[0])
	}
	f := medians(floor)
	return report.Table{
		Workload: "idle",
		About: fmt.Sprintf("%d videos x %d viewers, the pass after a pass, nothing due and nothing changed; medians of %d",
			s.set.Videos, s.set.Viewers, r.Repetitions),
		Columns: passColumns,
		Rows: []report.Row{
			passRow("ours, first pass", medians(first), f),
			passRow("ours, next pass", medians(next), f),
			passRow("floor", f, f),
		},
		Bars: []report.Bar{{Measure: "Redis CPU, ours ÷ floor, next pass", Value: medians(next).cpu / f.cpu, Limit: 0.5}},
	}, nil
}

// passes measures n passes of one contender on data without stale viewers, but
// for its own first pass to evict.
func (s *stage) passes(ctx context.Context, name string, n int) ([]sample, error) {
	kind, err := contender.Find(name)
	if err != nil {
		return nil, err
	}
	var trips atomic.Int64
	c, err := kind.New(s.srv.Addr, s.set, &trips)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	samples := make([]sample, n)
	for i := range samples {
		if samples[i], err = s.measure(ctx, kind, c, &trips); err != nil {
			return nil, err
		}
		if got, want := samples[i].viewers, s.set.Fresh(); got != want {
			return nil, fmt.Errorf("%s counted %d viewers in pass %d, want %d", name, got, i+1, want)
		}
	}
	return samples, nil
}
