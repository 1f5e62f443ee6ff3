package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/report"
)

// others shows what keys that are nobody's cost a pass: SCAN walks over them.
func others(ctx context.Context, r *Runner) (_ report.Table, err error) {
	s, err := r.stage(ctx, contender.Hashes, r.manyVideos())
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, s.srv.Close()) }()
	alone, err := s.repeated(ctx, 1)
	if err != nil {
		return report.Table{}, err
	}
	keys := r.sized(2_000_000)
	if err := s.addOthers(ctx, keys); err != nil {
		return report.Table{}, err
	}
	among, err := s.repeated(ctx, 1)
	if err != nil {
		return report.Table{}, err
	}
	t := report.Table{
		Workload: "others",
		About: fmt.Sprintf("%d videos x %d viewers, alone in the database and among %d other keys; medians of %d",
			s.set.Videos, s.set.Viewers, keys, r.Repetitions),
		Columns: passColumns,
	}
	for _, name := range []string{"ours", "floor"} {
		a, b := alone[name], among[name]
		t.Rows = append(t.Rows,
			passRow(name+", alone", a, alone["floor"]),
			passRow(name+", among others", b, among["floor"]),
			report.Row{Name: name + ", extra", Figures: []float64{b.wall - a.wall, b.cpu - a.cpu, report.None(), report.None(), b.trips - a.trips}})
	}
	return t, nil
}

func (s *stage) addOthers(ctx context.Context, keys int) error {
	bar := s.r.bar(int64(keys), "other keys")
	pipe := s.srv.Admin.Pipeline()
	const batch = 10_000
	for i := range keys {
		pipe.Set(ctx, "session:"+strconv.Itoa(10_000_000+i), i, 0)
		if pipe.Len() == batch || i == keys-1 {
			n := pipe.Len()
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
			_ = bar.Add(n)
		}
	}
	return errors.Join(bar.Finish(), s.srv.Settle(ctx))
}
