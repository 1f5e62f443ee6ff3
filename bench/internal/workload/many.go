package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headcount/bench/internal/dataset"
	"headcount/bench/internal/report"
)

// manyVideos is the dataset of many small hashes.
func (r *Runner) manyVideos() dataset.Set {
	return dataset.Set{Videos: r.sized(100_000), Viewers: 10}
}

// many compares all contenders on many small hashes.
func many(ctx context.Context, r *Runner) (_ report.Table, err error) {
	c := &comparison{r: r, set: r.manyVideos()}
	defer func() { err = errors.Join(err, c.close()) }()
	const share = 0.2 // of the videos for centrifuge, whose AddPresence writes them one by one
	err = errors.Join(
		c.add(ctx, 1, "ours", "floor", "plain", "lua", "zset"),
		c.add(ctx, share, "centrifuge", "centrifuge-users"))
	if err != nil {
		return report.Table{}, err
	}
	if err := c.run(ctx); err != nil {
		return report.Table{}, err
	}
	ours := c.of("ours")
	t := c.table("many", "5 % stale, on the loopback")
	t.Bars = []report.Bar{
		{Measure: "wall, plain ÷ ours", Value: c.of("plain").wall / ours.wall, AtLeast: true, Limit: 5},
		{Measure: "Redis CPU, ours ÷ floor", Value: ours.cpu / c.of("floor").cpu, Limit: 1.5},
	}
	return t, nil
}

// manySlow is many with 1 ms more in every round trip.
func manySlow(ctx context.Context, r *Runner) (_ report.Table, err error) {
	c := &comparison{r: r, set: r.manyVideos(), roundTrip: time.Millisecond}
	defer func() { err = errors.Join(err, c.close()) }()
	const share = 0.05 // of the videos for the plain loop, which would take minutes
	err = errors.Join(
		c.add(ctx, 1, "ours", "floor", "lua", "zset"),
		c.add(ctx, share, "plain", "centrifuge", "centrifuge-users"))
	if err != nil {
		return report.Table{}, err
	}
	if err := c.run(ctx); err != nil {
		return report.Table{}, err
	}
	t := c.table("many-1ms", "5 % stale, 1 ms more in every round trip")
	t.Bars = []report.Bar{
		{Measure: "wall, plain ÷ ours", Value: c.of("plain").wall / c.of("ours").wall, AtLeast: true, Limit: 40},
	}
	ping, err := c.ping(ctx)
	if err != nil {
		return report.Table{}, err
	}
	t.Notes = append(t.Notes, fmt.Sprintf("a PING through the proxy took %s ms", report.Number(report.MS(ping))))
	return t, nil
}

// large compares on one hash with very many viewers.
func large(ctx context.Context, r *Runner) (_ report.Table, err error) {
	c := &comparison{r: r, set: r.largeVideo()}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.add(ctx, 1, "ours", "floor", "plain", "lua", "zset"); err != nil {
		return report.Table{}, err
	}
	if err := c.run(ctx); err != nil {
		return report.Table{}, err
	}
	ours := c.of("ours")
	t := c.table("large", "5 % stale, on the loopback")
	t.Bars = []report.Bar{
		{Measure: "Redis CPU, ours ÷ floor", Value: ours.cpu / c.of("floor").cpu, Limit: 1.2},
		{Measure: "longest command, ours", Value: ours.longest, Limit: 5, Unit: "ms"},
	}
	return t, nil
}

// largeVideo is the dataset of one hash with very many viewers.
func (r *Runner) largeVideo() dataset.Set {
	return dataset.Set{Videos: 1, Viewers: r.sized(1_000_000)}
}
