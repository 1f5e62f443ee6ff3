package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headcount/bench/internal/load"
	"headcount/bench/internal/report"
	"headcount/bench/internal/subject"
)

// busyVideos is how many videos the audience watches unless a workload says otherwise.
const busyVideos = 20

// recordMany has 256 players at a time play some videos.
func recordMany(ctx context.Context, r *Runner) (report.Table, error) {
	return r.recordBusy(ctx, "plays", busyVideos, 0.35)
}

// recordHot has all of them play the same video.
func recordHot(ctx context.Context, r *Runner) (report.Table, error) {
	return r.recordBusy(ctx, "hot", 1, 0.15)
}

func (r *Runner) recordBusy(ctx context.Context, name string, videos int, redisLimit float64) (_ report.Table, err error) {
	m, err := r.match(ctx, r.audience(videos))
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	players, err := m.addAll(ctx, load.Load{Kind: load.Play, Connections: manyConnections}, subject.Ours, subject.OneCall, subject.NoRedis)
	if err != nil {
		return report.Table{}, err
	}
	if err := m.run(ctx); err != nil {
		return report.Table{}, err
	}
	limit, err := m.redisLimit(ctx)
	if err != nil {
		return report.Table{}, err
	}
	ours, oneCall, none := players[0], players[1], players[2]
	t := m.table(name, fmt.Sprintf("plays of %d viewers over %d videos", m.set.Total(), videos))
	t.Rows = append(t.Rows, limit)
	t.Notes = []string{ours.note(oneCall, none)}
	t.Bars = []report.Bar{{Measure: "Redis CPU per play, ours ÷ one call per request", Value: ours.redisCPU() / oneCall.redisCPU(), Limit: redisLimit}}
	if videos == busyVideos {
		t.Bars = append(t.Bars,
			report.Bar{Measure: "plays per second, ours ÷ one call per request", Value: ours.rate() / oneCall.rate(), AtLeast: true, Limit: 1.7},
			report.Bar{Measure: "plays per second, ours ÷ no Redis", Value: ours.rate() / none.rate(), AtLeast: true, Limit: 0.7})
	}
	return t, nil
}

// addAll adds a server of each kind, all with the same load.
func (m *match) addAll(ctx context.Context, l load.Load, kinds ...string) (players []*player, err error) {
	for _, kind := range kinds {
		p, err := m.add(ctx, kind, l)
		if err != nil {
			return nil, err
		}
		players = append(players, p)
	}
	return players, nil
}

// redisLimit is what Redis itself can do: HSET alone, pipelined by a client in C.
func (m *match) redisLimit(ctx context.Context) (report.Row, error) {
	row := report.Row{Name: "HSET by redis-benchmark"}
	n := m.r.sized(2_000_000)
	var rates, cpus []float64
	for range m.r.Repetitions {
		before, err := m.srv.CPU(ctx)
		if err != nil {
			return row, err
		}
		rate, err := load.HSET(ctx, m.srv.Addr, n)
		if err != nil {
			return row, err
		}
		after, err := m.srv.CPU(ctx)
		if err != nil {
			return row, err
		}
		rates, cpus = append(rates, rate), append(cpus, report.MS(after-before)*µs/float64(n))
	}
	none := report.None()
	row.Figures = []float64{load.HSETConnections, report.Median(rates), none, none, none, none, report.Median(cpus), none, none, none}
	return row, nil
}

// recordIdle has a single player, whom nothing should delay.
func recordIdle(ctx context.Context, r *Runner) (_ report.Table, err error) {
	m, err := r.match(ctx, r.audience(busyVideos))
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	players, err := m.addAll(ctx, load.Load{Kind: load.Play, Connections: 1}, subject.Ours, subject.OneCall, subject.NoRedis)
	if err != nil {
		return report.Table{}, err
	}
	if err := m.run(ctx); err != nil {
		return report.Table{}, err
	}
	t := m.table("idle", "plays one after the other")
	t.Bars = []report.Bar{{Measure: "p50, ours ÷ one call per request", Value: players[0].p50() / players[1].p50(), Limit: 1.1}}
	return t, nil
}

// recordBatch sends plays in batches.
func recordBatch(ctx context.Context, r *Runner) (_ report.Table, err error) {
	m, err := r.match(ctx, r.audience(busyVideos))
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	batch, err := m.add(ctx, subject.Ours, load.Load{Kind: load.Plays, Batch: 500, Connections: 8})
	if err != nil {
		return report.Table{}, err
	}
	batch.name = "ours, batches of 500"
	single, err := m.add(ctx, subject.OneCall, load.Load{Kind: load.Play, Connections: manyConnections})
	if err != nil {
		return report.Table{}, err
	}
	if err := m.run(ctx); err != nil {
		return report.Table{}, err
	}
	t := m.table("batch", fmt.Sprintf("plays of %d viewers over %d videos", m.set.Total(), m.set.Videos))
	t.Bars = []report.Bar{{Measure: "Redis CPU per play, batches ÷ one call per request", Value: batch.redisCPU() / single.redisCPU(), Limit: 0.15}}
	return t, nil
}

// quickly is d, or far less for a smoke test.
func (r *Runner) quickly(d time.Duration) time.Duration {
	if r.Quick {
		return d / 10
	}
	return d
}
