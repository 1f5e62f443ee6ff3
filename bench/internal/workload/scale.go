package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/report"
)

// scale shows what a viewer and a video cost as there are more of them.
func scale(ctx context.Context, r *Runner) (report.Table, error) {
	t := report.Table{
		Workload: "scale",
		About:    fmt.Sprintf("cost per viewer as a video grows, and per video as they become more; 5 %% stale; medians of %d", r.Repetitions),
		Columns: []report.Column{
			{Key: "redis_cpu_us_per_viewer", Title: "CPU µs/viewer"},
			{Key: "redis_cpu_us_per_video", Title: "CPU µs/video"},
			{Key: "wall_us_per_viewer", Title: "wall µs/viewer"},
			{Key: "floor_cpu_us_per_viewer", Title: "floor's CPU µs/viewer"},
			{Key: "redis_cpu_to_floor", Title: "CPU ÷floor"},
		},
		Notes: []string{"a sample of a small set is the mean of as many passes as make 100,000 viewers"},
	}
	measure := func(sizes []int, set func(size int) dataset.Set) (ours, floor []float64, err error) {
		for _, size := range sizes {
			row, err := r.scaleRow(ctx, set(r.sized(size)))
			if err != nil {
				return nil, nil, err
			}
			t.Rows = append(t.Rows, row)
			ours, floor = append(ours, row.Figures[0]), append(floor, row.Figures[3])
		}
		return ours, floor, nil
	}
	viewers, floorViewers, err := measure([]int{1_000, 10_000, 100_000, 1_000_000}, func(size int) dataset.Set {
		return dataset.Set{Videos: 1, Viewers: size}
	})
	if err != nil {
		return t, err
	}
	videos, floorVideos, err := measure([]int{1_000, 10_000, 100_000}, func(size int) dataset.Set {
		return dataset.Set{Videos: size, Viewers: 10}
	})
	if err != nil {
		return t, err
	}
	const level = 1.25
	t.Bars = []report.Bar{
		{Measure: "Redis CPU per viewer, highest ÷ lowest", Value: spread(viewers), Limit: level},
		{Measure: "Redis CPU per video, highest ÷ lowest", Value: spread(videos), Limit: level},
	}
	t.Notes = append(t.Notes, fmt.Sprintf("the floor's own: %s per viewer, %s per video; a large set does not fit into the processor's caches",
		report.Number(spread(floorViewers)), report.Number(spread(floorVideos))))
	return t, nil
}

func spread(costs []float64) float64 { return slices.Max(costs) / slices.Min(costs) }

func (r *Runner) scaleRow(ctx context.Context, set dataset.Set) (_ report.Row, err error) {
	s, err := r.stage(ctx, contender.Hashes, set)
	if err != nil {
		return report.Row{}, err
	}
	defer func() { err = errors.Join(err, s.srv.Close()) }()
	const enough = 100_000 // viewers in a sample: a pass over a few is too short to be measured
	medians, err := s.repeated(ctx, int(max(1, int64(r.sized(enough))/set.Total())))
	if err != nil {
		return report.Row{}, err
	}
	o, f := medians["ours"], medians["floor"]
	total, videos := float64(set.Total()), float64(set.Videos)
	return report.Row{
		Name:    fmt.Sprintf("%d videos x %d viewers", set.Videos, set.Viewers),
		Figures: []float64{o.cpu * µs / total, o.cpu * µs / videos, o.wall * µs / total, f.cpu * µs / total, o.cpu / f.cpu},
	}, nil
}
