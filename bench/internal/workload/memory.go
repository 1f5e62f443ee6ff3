package workload

import (
	"context"
	"errors"
	"fmt"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/report"
)

// memory shows how much of it our worker takes, by the number of videos.
func memory(ctx context.Context, r *Runner) (report.Table, error) {
	t := report.Table{
		Workload: "memory",
		About:    "peak memory of a process that makes our passes, 10 viewers a video",
		Columns: []report.Column{
			{Key: "first_pass_mib", Title: "after 1 pass MiB"},
			{Key: "third_pass_mib", Title: "after 3 passes MiB"},
		},
	}
	for _, videos := range []int{r.sized(100_000), r.sized(1_000_000)} {
		row, err := r.memoryRow(ctx, dataset.Set{Videos: videos, Viewers: 10})
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row)
	}
	few, many := t.Rows[0].Figures[1], t.Rows[1].Figures[1]
	t.Bars = []report.Bar{
		{Measure: "peak memory", Value: max(few, many), Limit: 64, Unit: "MiB"},
		{Measure: "peak memory, ten times the videos ÷ the first", Value: many / few, Limit: 1.25},
	}
	return t, nil
}

func (r *Runner) memoryRow(ctx context.Context, set dataset.Set) (_ report.Row, err error) {
	s, err := r.stage(ctx, contender.Hashes, set)
	if err != nil {
		return report.Row{}, err
	}
	defer func() { err = errors.Join(err, s.srv.Close()) }()
	worker, err := startChild(ctx, ChildSpec{Contender: "ours", Addr: s.srv.Addr, Set: set})
	if err != nil {
		return report.Row{}, err
	}
	defer func() { err = errors.Join(err, worker.close()) }()
	var peaks []float64
	for range 3 {
		result, err := worker.pass()
		if err != nil {
			return report.Row{}, err
		}
		if want := set.Fresh(); result.Viewers != want {
			return report.Row{}, fmt.Errorf("ours counted %d viewers, want %d", result.Viewers, want)
		}
		peaks = append(peaks, float64(result.Peak)/mib)
	}
	return report.Row{Name: fmt.Sprintf("%d videos", set.Videos), Figures: []float64{peaks[0], peaks[2]}}, nil
}
