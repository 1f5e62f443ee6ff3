package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"headcount/bench/internal/dataset"
	"headcount/bench/internal/proxy"
	"headcount/bench/internal/report"
	"headcount/bench/internal/server"
	"headcount/bench/internal/subject"
)

const (
	overloadFactor = 5 // times what the server can serve
	overloadTime   = 30 * time.Second
	batchSize      = 500    // plays in a request
	queue          = 10_000 // plays that the product lets wait

	// farAway is the round trip to Redis. It makes Redis's answers, not this
	// machine's two cores, what plays wait for: no program could offer a
	// server on the same machine five times what its cores can take.
	farAway = 200 * time.Millisecond

	// capacity is the most that can be recorded then, in plays per second: as
	// many as can wait, every round trip.
	capacity = queue * float64(time.Second) / float64(farAway)
)

// overload offers far more plays than the server can record, and looks at what
// becomes of those that it took and of those that it did not.
func overload(ctx context.Context, r *Runner) (_ report.Table, err error) {
	srv, err := server.Start(ctx)
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	p, err := proxy.New(ctx, srv.Addr, farAway)
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ours, err := subject.Start(ctx, subject.Spec{Kind: subject.Ours, Redis: p.Addr()})
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()

	f := newFlood(ours.URL, dataset.Set{Videos: busyVideos})
	var o outcome
	var watch sync.WaitGroup
	ctxWatch, stop := context.WithCancel(ctx)
	watch.Go(func() { o.memory, o.memoryErr = watchMemory(ctxWatch, ours, r.quickly(time.Second)) })
	o.offered, err = f.offer(ctx, overloadFactor*capacity, r.quickly(overloadTime))
	stop()
	watch.Wait()
	if err := errors.Join(err, o.memoryErr); err != nil {
		return report.Table{}, err
	}
	o.answers = f.answers
	o.missing, err = f.missing(ctx, srv)
	return o.table(r), err
}

// outcome is what became of an overload.
type outcome struct {
	offered   float64 // plays per second
	answers   []answer
	memory    []float64 // bytes, in the order of time
	memoryErr error
	missing   int64
}

// watchMemory reads a server's memory every so often until ctx ends.
func watchMemory(ctx context.Context, p *subject.Process, every time.Duration) (memory []float64, err error) {
	for {
		stats, err := p.Stats(context.WithoutCancel(ctx))
		if err != nil {
			return memory, err
		}
		memory = append(memory, stats.Memory)
		select {
		case <-ctx.Done(): // the load is over
			return memory, nil
		case <-time.After(every):
		}
	}
}

func (o outcome) table(r *Runner) report.Table {
	var taken, refused, failed latencies
	recorded := 0
	notes := []string{fmt.Sprintf("memory of the server at its highest: %s MiB", report.Number(report.Percentile(o.memory, 1)/mib))}
	for _, a := range o.answers {
		switch {
		case a.err != nil:
			if failed == nil {
				notes = append(notes, "first failure: "+a.err.Error())
			}
			failed = append(failed, a.took)
		case a.Recorded > 0:
			taken = append(taken, a.took)
			recorded += a.Recorded
		default:
			refused = append(refused, a.took)
		}
	}
	ms := func(l latencies, p float64) float64 { return report.MS(report.Percentile(l, p)) }
	row := func(name string, plays int, l latencies) report.Row {
		return report.Row{Name: name, Figures: []float64{float64(plays), ms(l, 0.5), ms(l, 0.99), ms(l, 0.999)}}
	}
	return report.Table{
		Workload: "overload",
		About: fmt.Sprintf("batches of %d plays, %s plays/s offered for %v to a server that can record %s at the most, Redis %v away",
			batchSize, report.Number(o.offered), r.quickly(overloadTime), report.Number(capacity), farAway),
		Columns: []report.Column{
			{Key: "plays", Title: "plays"},
			{Key: "p50_ms", Title: "p50 ms"},
			{Key: "p99_ms", Title: "p99 ms"},
			{Key: "p999_ms", Title: "p99.9 ms"},
		},
		Rows: []report.Row{
			row("recorded", recorded, taken),
			row("refused with 503", len(refused)*batchSize, refused),
			row("recorded in part: the rest", len(taken)*batchSize-recorded, nil),
			row("failed", len(failed)*batchSize, failed),
		},
		Bars: []report.Bar{
			{Measure: "plays offered ÷ recorded", Value: float64(len(o.answers)*batchSize) / float64(recorded), AtLeast: true, Limit: overloadFactor},
			{Measure: "p99 of a recorded play", Value: ms(taken, 0.99), Limit: report.MS(subject.Deadline), Unit: "ms"},
			{Measure: "p99 of a refusal", Value: ms(refused, 0.99), Limit: report.MS(farAway), Unit: "ms"},
			{Measure: "plays neither recorded nor refused", Value: float64(len(failed) * batchSize), Limit: 0},
			{Measure: "memory, last third ÷ second", Value: growth(o.memory), Limit: 1.25},
			{Measure: "acknowledged plays missing in Redis", Value: float64(o.missing), Limit: 0},
		},
		Notes: notes,
	}
}

// growth compares the memory of the last third of the time with that of the
// second: in the first it is taken.
func growth(memory []float64) float64 {
	n := len(memory)
	return report.Median(memory[n*2/3:]) / report.Median(memory[n/3:max(n*2/3, n/3+1)])
}
