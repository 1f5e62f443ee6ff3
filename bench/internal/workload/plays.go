package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/report"
	"headcount/bench/internal/server"
	"headcount/internal/keys"
	"headcount/recorder"
)

const (
	playRate  = 5000 // per second
	quietTime = 3 * time.Second
)

// largePlays shows what a pass over a very large hash does to those who play
// meanwhile. The pass is made by a process of its own, as in production.
func largePlays(ctx context.Context, r *Runner) (_ report.Table, err error) {
	s, err := r.stage(ctx, contender.Hashes, r.largeVideo())
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, s.srv.Close()) }()
	worker, err := startChild(ctx, ChildSpec{Contender: "ours", Addr: s.srv.Addr, Set: s.set, Anew: true})
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, worker.close()) }()

	var during, between []latencies
	for range r.Repetitions {
		d, b, err := s.playThroughPass(ctx, worker)
		if err != nil {
			return report.Table{}, err
		}
		during, between = append(during, d), append(between, b)
	}
	return playTable(s, during, between), nil
}

// playThroughPass plays for a while, goes on while a pass is made, and returns
// the latencies of before and of meanwhile.
func (s *stage) playThroughPass(ctx context.Context, worker *child) (during, between latencies, err error) {
	if err := s.restore(ctx); err != nil {
		return nil, nil, err
	}
	p, err := startPlays(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	quiet := quietTime
	if s.r.Quick {
		quiet /= 10
	}
	err = wait(ctx, quiet/3) // for connections to be there
	began := time.Now()
	err = errors.Join(err, wait(ctx, quiet))
	ended := time.Now()
	s.touched = true
	result, passErr := worker.pass()
	if err := errors.Join(err, passErr, p.stop()); err != nil {
		return nil, nil, err
	}
	if want := s.set.Fresh(); result.Viewers != want {
		return nil, nil, fmt.Errorf("ours counted %d viewers, want %d", result.Viewers, want)
	}
	return p.within(result.Began, result.Done), p.within(began, ended), nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// latencies are of plays, in any order.
type latencies []time.Duration

// plays is a load of plays that goes on until it is stopped. It is open: a play
// starts when it is due, however long the others take.
type plays struct {
	cancel context.CancelFunc
	ended  chan error

	mu   sync.Mutex
	done []play
}

type play struct {
	began time.Time
	took  time.Duration
}

func startPlays(ctx context.Context, s *stage) (*plays, error) {
	rdb, err := server.Connect(s.srv.Addr)
	if err != nil {
		return nil, err
	}
	rec := recorder.New(rdb, recorder.Options{
		Keys: keys.New("video"), KeyTTL: dataset.KeyTTL, CountTTL: dataset.CountTTL, Timeout: time.Minute,
	})
	running, cancel := context.WithCancel(ctx)
	p := &plays{cancel: cancel, ended: make(chan error, 1)}
	go func() {
		err := p.run(running, func() error {
			_, err := rec.Play(ctx, s.set.VideoID(0), freshViewer(s.set))
			return err
		})
		p.ended <- errors.Join(err, rdb.Close())
	}()
	return p, nil
}

// freshViewer is a random viewer of the first video, but none who is to be evicted.
func freshViewer(set dataset.Set) string {
	for {
		if viewer := rand.IntN(set.Viewers); !set.Stale(0, viewer) {
			return set.ViewerID(0, viewer)
		}
	}
}

// run starts plays at their rate until ctx ends, and waits for the last of them.
func (p *plays) run(ctx context.Context, one func() error) error {
	var group errgroup.Group
	start := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for started := 0; ; {
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-tick.C:
		}
		for due := int(time.Since(start).Seconds() * playRate); started < due; started++ {
			group.Go(func() error {
				began := time.Now()
				err := one()
				p.note(began)
				return err
			})
		}
	}
}

func (p *plays) note(began time.Time) {
	took := time.Since(began)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, play{began, took})
}

func (p *plays) stop() error {
	p.cancel()
	return <-p.ended
}

// within are the latencies of the plays that began in a time. Call it after stop.
func (p *plays) within(from, to time.Time) latencies {
	var l latencies
	for _, play := range p.done {
		if !play.began.Before(from) && play.began.Before(to) {
			l = append(l, play.took)
		}
	}
	return l
}

func playTable(s *stage, during, between []latencies) report.Table {
	d, b := playRow("during passes", during), playRow("between passes", between)
	return report.Table{
		Workload: "large-plays",
		About: fmt.Sprintf("a video with %d viewers, 5 %% stale, who beat %d times a second: latency of a play; medians of %d",
			s.set.Viewers, playRate, len(during)),
		Columns: []report.Column{
			{Key: "plays", Title: "plays"},
			{Key: "p50_ms", Title: "p50 ms"},
			{Key: "p99_ms", Title: "p99 ms"},
			{Key: "max_ms", Title: "max ms"},
		},
		Rows: []report.Row{d, b},
		Bars: []report.Bar{{Measure: "p99 of a play, during ÷ between", Value: d.Figures[2] / b.Figures[2], Limit: 2}},
	}
}

// playRow is the medians, over the repetitions, of each one's percentiles.
func playRow(name string, repetitions []latencies) report.Row {
	percentile := func(p float64) float64 {
		var values []float64
		for _, l := range repetitions {
			values = append(values, report.MS(report.Percentile(l, p)))
		}
		return report.Median(values)
	}
	var counts []int64
	for _, l := range repetitions {
		counts = append(counts, int64(len(l)))
	}
	return report.Row{Name: name, Figures: []float64{float64(report.Median(counts)), percentile(0.5), percentile(0.99), percentile(1)}}
}
