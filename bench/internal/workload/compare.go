package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/proxy"
	"headcount/bench/internal/report"
	"headcount/bench/internal/server"
)

// entrant is a contender in a comparison.
type entrant struct {
	kind   contender.Kind
	stage  *stage
	addr   string  // where it connects to
	factor float64 // its figures are those of a smaller dataset, times this

	samples []sample
	peak    int64 // bytes: of its process
	turns   int64 // seen by a proxy, for those that cannot count round trips
}

// comparison runs contenders on the same data.
type comparison struct {
	r         *Runner
	set       dataset.Set
	roundTrip time.Duration // added to every round trip
	entrants  []*entrant
	stages    []*stage
	proxies   []*proxy.Proxy
}

// add lets contenders take part, on a dataset of that share of the full one.
func (c *comparison) add(ctx context.Context, share float64, names ...string) error {
	set := c.set
	set.Videos = max(1, int(float64(set.Videos)*share))
	for _, name := range names {
		kind, err := contender.Find(name)
		if err != nil {
			return err
		}
		s, err := c.stageFor(ctx, kind.Layout, set)
		if err != nil {
			return err
		}
		e := &entrant{kind: kind, stage: s, addr: s.srv.Addr, factor: float64(c.set.Videos) / float64(set.Videos)}
		if c.roundTrip > 0 {
			p, err := proxy.New(ctx, s.srv.Addr, c.roundTrip)
			if err != nil {
				return err
			}
			e.addr = p.Addr()
			c.proxies = append(c.proxies, p)
		}
		c.entrants = append(c.entrants, e)
	}
	return nil
}

// stageFor shares a server among contenders of one layout and size.
func (c *comparison) stageFor(ctx context.Context, layout contender.Layout, set dataset.Set) (*stage, error) {
	for _, s := range c.stages {
		if s.layout.Name == layout.Name && s.set == set {
			return s, nil
		}
	}
	s, err := c.r.stage(ctx, layout, set)
	if err == nil {
		c.stages = append(c.stages, s)
	}
	return s, err
}

func (c *comparison) close() error {
	var errs []error
	for _, p := range c.proxies {
		errs = append(errs, p.Close())
	}
	for _, s := range c.stages {
		errs = append(errs, s.srv.Close())
	}
	return errors.Join(errs...)
}

// run makes the repetitions: in each, every contender makes a pass over data
// in the same state; who begins changes.
func (c *comparison) run(ctx context.Context) error {
	for i := range c.r.Repetitions {
		for j := range c.entrants {
			e := c.entrants[(i+j)%len(c.entrants)]
			if err := e.stage.restore(ctx); err != nil {
				return err
			}
			s, err := e.stage.pass(ctx, e.kind, e.addr)
			if err != nil {
				return err
			}
			e.samples = append(e.samples, s)
		}
	}
	for _, e := range c.entrants {
		if err := e.inChild(ctx); err != nil {
			return err
		}
	}
	return nil
}

// inChild measures what takes a process of its own, and the turns.
func (e *entrant) inChild(ctx context.Context) error {
	if err := e.stage.restore(ctx); err != nil {
		return err
	}
	p, err := proxy.New(ctx, e.stage.srv.Addr, 0)
	if err != nil {
		return err
	}
	child, err := startChild(ctx, ChildSpec{Contender: e.kind.Name, Addr: p.Addr(), Set: e.stage.set})
	if err != nil {
		return err
	}
	e.stage.touched = true
	result, err := child.pass()
	if err == nil {
		err = e.stage.check(ctx, e.kind, result.Viewers)
	}
	e.peak, e.turns = result.Peak, p.Turns()
	return errors.Join(err, child.close(), p.Close())
}

// figures are the medians of an entrant, for the full dataset.
type figures struct{ wall, cpu, longest, trips float64 } // ms, and a number

func (e *entrant) figures() figures {
	f := medians(e.samples)
	if f.trips == 0 {
		f.trips = float64(e.turns)
	}
	f.wall *= e.factor
	f.cpu *= e.factor
	f.trips *= e.factor
	return f
}

func medians(samples []sample) figures {
	median := func(of func(sample) float64) float64 {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return report.Median(values)
	}
	return figures{
		wall:    median(func(s sample) float64 { return report.MS(s.wall) }),
		cpu:     median(func(s sample) float64 { return report.MS(s.cpu) }),
		longest: median(func(s sample) float64 { return report.MS(s.longest) }),
		trips:   median(func(s sample) float64 { return float64(s.trips) }),
	}
}

// of returns the figures of one contender; all NaN when it does not take part.
func (c *comparison) of(name string) figures {
	for _, e := range c.entrants {
		if e.kind.Name == name {
			return e.figures()
		}
	}
	none := math.NaN()
	return figures{none, none, none, none}
}

var compareColumns = []report.Column{
	{Key: "wall_ms", Title: "wall ms"},
	{Key: "wall_to_ours", Title: "÷ours"},
	{Key: "redis_cpu_ms", Title: "Redis CPU ms"},
	{Key: "redis_cpu_to_floor", Title: "÷floor"},
	{Key: "wall_us_per_video", Title: "wall µs/video"},
	{Key: "redis_cpu_us_per_viewer", Title: "CPU µs/viewer"},
	{Key: "longest_ms", Title: "longest ms"},
	{Key: "round_trips", Title: "round trips"},
	{Key: "peak_mib", Title: "peak MiB"},
	{Key: "bytes_per_viewer", Title: "B/viewer"},
}

const (
	µs  = 1000 // of a millisecond
	mib = 1 << 20
)

func (c *comparison) rows() []report.Row {
	ours, floor := c.of("ours"), c.of("floor")
	var rows []report.Row
	for _, e := range c.entrants {
		f := e.figures()
		rows = append(rows, report.Row{Name: e.kind.Name, Figures: []float64{
			f.wall, f.wall / ours.wall,
			f.cpu, f.cpu / floor.cpu,
			f.wall * µs / float64(c.set.Videos), f.cpu * µs / float64(c.set.Total()),
			f.longest, f.trips, float64(e.peak) / mib, e.stage.perViewer,
		}})
	}
	return rows
}

// notes say what each contender is, and whose figures are scaled.
func (c *comparison) notes() []string {
	var notes []string
	for _, e := range c.entrants {
		note := e.kind.Name + ": " + e.kind.About
		if e.factor != 1 {
			note += fmt.Sprintf("; measured on %d videos, wall, CPU and round trips times %s", e.stage.set.Videos, report.Number(e.factor))
		}
		notes = append(notes, note)
	}
	return notes
}

func (c *comparison) table(name, about string) report.Table {
	return report.Table{
		Workload: name,
		About:    fmt.Sprintf("%d videos x %d viewers, %s; medians of %d", c.set.Videos, c.set.Viewers, about, c.r.Repetitions),
		Columns:  compareColumns,
		Rows:     c.rows(),
		Notes:    c.notes(),
	}
}

// ping is what a round trip takes in truth: the median of some.
func (c *comparison) ping(ctx context.Context) (_ time.Duration, err error) {
	rdb, err := server.Connect(c.entrants[0].addr)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rdb.Close()) }()
	var took []time.Duration
	for range 201 {
		start := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	return report.Median(took), nil
}
