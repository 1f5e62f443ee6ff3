package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/load"
	"headcount/bench/internal/report"
	"headcount/bench/internal/subject"
	"headcount/internal/keys"
)

// match compares servers under the same load, on one Redis.
type match struct {
	*stage
	players []*player
}

// player is a server in a match and the load that it gets.
type player struct {
	name    string
	process *subject.Process
	load    load.Load
	samples []loaded
}

// loaded is what one load met with, and what it cost.
type loaded struct {
	load.Result
	redis, server time.Duration // CPU
	allocations   float64
	plays         float64 // plays or lookups
}

const (
	manyConnections = 256
	loadTime        = 4 * time.Second // of each repetition
	quickLoad       = time.Second
	warmTime        = time.Second
)

// audience is who plays: enough of them that few beat twice within a second.
func (r *Runner) audience(videos int) dataset.Set {
	return dataset.Set{Videos: videos, Viewers: max(1, r.sized(100_000)/videos)}
}

// match starts a Redis with the viewers in it. The caller closes the match.
func (r *Runner) match(ctx context.Context, set dataset.Set) (*match, error) {
	s, err := r.stage(ctx, contender.Hashes, set)
	if err != nil {
		return nil, err
	}
	m := &match{stage: s}
	now, err := s.srv.Admin.Time(ctx).Result()
	if err == nil { // or no answer says as of when
		err = s.srv.Admin.HSet(ctx, keys.New("video").LastPass(), "finished_at", now.Unix()).Err()
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// add starts a server and gives it a load.
func (m *match) add(ctx context.Context, kind string, l load.Load) (*player, error) {
	process, err := subject.Start(ctx, subject.Spec{Kind: kind, Redis: m.srv.Addr})
	if err != nil {
		return nil, err
	}
	l.Set, l.Duration = m.set, loadTime
	if m.r.Quick {
		l.Duration = quickLoad
	}
	p := &player{name: kind, process: process, load: l}
	m.players = append(m.players, p)
	return p, nil
}

func (m *match) close() error {
	var errs []error
	for _, p := range m.players {
		errs = append(errs, p.process.Close())
	}
	return errors.Join(append(errs, m.srv.Close())...)
}

// run loads the servers in turns; who begins changes.
func (m *match) run(ctx context.Context) error {
	bar := m.r.bar(int64(m.r.Repetitions*len(m.players)), "loads")
	for i := range m.r.Repetitions {
		for j := range m.players {
			p := m.players[(i+j)%len(m.players)]
			if err := m.measure(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			_ = bar.Add(1)
		}
	}
	return bar.Finish()
}

func (m *match) measure(ctx context.Context, p *player) error {
	warm := p.load
	warm.Duration = warmTime
	if _, err := warm.Run(ctx, p.process.URL); err != nil {
		return err
	}
	redis, err := m.srv.CPU(ctx)
	if err != nil {
		return err
	}
	before, err := p.process.Stats(ctx)
	if err != nil {
		return err
	}
	s := loaded{}
	if s.Result, err = p.load.Run(ctx, p.process.URL); err != nil {
		return err
	}
	after, err := p.process.Stats(ctx)
	if err != nil {
		return err
	}
	redisAfter, err := m.srv.CPU(ctx)
	s.redis, s.server, s.allocations = redisAfter-redis, after.CPU-before.CPU, after.Allocations-before.Allocations
	s.plays = float64(s.Requests) * float64(max(p.load.Batch, 1))
	p.samples = append(p.samples, s)
	return err
}

// median is that of a figure over the repetitions.
func (p *player) median(of func(loaded) float64) float64 {
	values := make([]float64, len(p.samples))
	for i, s := range p.samples {
		values[i] = of(s)
	}
	return report.Median(values)
}

func (p *player) rate() float64 {
	return p.median(func(l loaded) float64 { return l.Rate * float64(max(p.load.Batch, 1)) })
}

func (p *player) p50() float64 { return p.median(func(l loaded) float64 { return report.MS(l.P50) }) }

func (p *player) redisCPU() float64 {
	return p.median(func(l loaded) float64 { return report.MS(l.redis) * µs / l.plays })
}

// cpu is what one play costs the machine: on one that is busy with nothing
// else, the rate is its cores divided by this.
func (p *player) cpu() float64 {
	return p.median(func(l loaded) float64 { return report.MS(l.redis+l.server+l.CPU) * µs / l.plays })
}

// note compares by CPU time, which other work on the machine disturbs less.
func (p *player) note(others ...*player) string {
	note := "rates by the CPU time of server, Redis and load:"
	for _, other := range others {
		note += fmt.Sprintf(" %s ÷ %s %s;", p.name, other.name, report.Number(other.cpu()/p.cpu()))
	}
	return note + " other work on the machine disturbs these less"
}

var loadColumns = []report.Column{
	{Key: "connections", Title: "connections"},
	{Key: "per_second", Title: "per second"},
	{Key: "p50_ms", Title: "p50 ms"},
	{Key: "p99_ms", Title: "p99 ms"},
	{Key: "p999_ms", Title: "p99.9 ms"},
	{Key: "refused_percent", Title: "refused %"},
	{Key: "redis_cpu_us", Title: "Redis CPU µs"},
	{Key: "server_cpu_us", Title: "server CPU µs"},
	{Key: "load_cpu_us", Title: "load's CPU µs"},
	{Key: "allocations", Title: "allocations"},
}

// row has costs for each play or lookup, but allocations for each request.
func (p *player) row() report.Row {
	return report.Row{Name: p.name, Figures: []float64{
		float64(p.load.Connections), p.rate(), p.p50(),
		p.median(func(l loaded) float64 { return report.MS(l.P99) }),
		p.median(func(l loaded) float64 { return report.MS(l.P999) }),
		p.median(func(l loaded) float64 { return 100 * float64(l.Refused) / float64(l.Requests+l.Refused) }),
		p.redisCPU(),
		p.median(func(l loaded) float64 { return report.MS(l.server) * µs / l.plays }),
		p.median(func(l loaded) float64 { return report.MS(l.CPU) * µs / l.plays }),
		p.median(func(l loaded) float64 { return l.allocations / float64(l.Requests) }),
	}}
}

func (m *match) table(name, about string) report.Table {
	t := report.Table{
		Workload: name,
		About:    fmt.Sprintf("%s; medians of %d", about, m.r.Repetitions),
		Columns:  loadColumns,
	}
	for _, p := range m.players {
		t.Rows = append(t.Rows, p.row())
	}
	return t
}
