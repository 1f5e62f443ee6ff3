// Package workload is the situations in which the contenders are measured.
package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/report"
	"headcount/bench/internal/server"
)

// Runner carries what all workloads share.
type Runner struct {
	Repetitions int
	Scale       float64   // of every size; 1 for the sizes that the bars are for
	Quick       bool      // also shorten what is bounded by time, not by size
	Progress    io.Writer // for progress bars
}

// Workload is one situation.
type Workload struct {
	Name string
	Run  func(context.Context, *Runner) (report.Table, error)
}

// All returns the workloads of each command, in the order in which they run.
func All() map[string][]Workload {
	return map[string][]Workload{
		"pass": {
			{"many", many},
			{"many-1ms", manySlow},
			{"idle", idle},
			{"steady", steady},
			{"large", large},
			{"large-plays", largePlays},
			{"scale", scale},
			{"memory", memory},
			{"others", others},
		},
		"record": {
			{"plays", recordMany},
			{"hot", recordHot},
			{"idle", recordIdle},
			{"batch", recordBatch},
			{"overload", overload},
		},
		"stats": {
			{"plays", statisticsPlays},
			{"pass", statisticsPass},
			{"memory", statisticsMemory},
		},
		"lookup": {
			{"cached", lookupCached},
			{"cold", lookupCold},
		},
	}
}

// sized is n at the runner's scale, at least 1.
func (r *Runner) sized(n int) int { return max(1, int(float64(n)*r.Scale)) }

// stage is a server with a dataset in it.
type stage struct {
	r         *Runner
	srv       *server.Server
	layout    contender.Layout
	set       dataset.Set
	perViewer float64 // bytes of Redis's memory

	filled  time.Time // when the viewers were put there
	touched bool      // a pass has been made since
}

// stage starts a server and fills it. The caller closes the server.
func (r *Runner) stage(ctx context.Context, layout contender.Layout, set dataset.Set) (*stage, error) {
	srv, err := server.Start(ctx)
	if err != nil {
		return nil, err
	}
	s := &stage{r: r, srv: srv, layout: layout, set: set}
	if err := s.fill(ctx); err != nil {
		return nil, errors.Join(err, srv.Close())
	}
	return s, nil
}

func (s *stage) fill(ctx context.Context) error {
	before, err := s.srv.Memory(ctx)
	if err != nil {
		return err
	}
	if err := s.put(ctx); err != nil {
		return err
	}
	after, err := s.srv.Memory(ctx)
	if err != nil {
		return err
	}
	s.perViewer = float64(after-before) / float64(s.set.Total())
	if s.set.Viewers > compact {
		// A large hash grows its table a step with each write; this ends it.
		return s.put(ctx)
	}
	return nil
}

// compact is how many viewers Redis keeps in the compact form of a hash.
const compact = 128

// restore puts the viewers back as they were, also those that a pass evicted.
func (s *stage) restore(ctx context.Context) error {
	const old = time.Minute // in which nobody becomes stale
	if !s.touched && time.Since(s.filled) < old {
		return nil
	}
	return s.put(ctx)
}

func (s *stage) put(ctx context.Context) error {
	about := fmt.Sprintf("%d videos x %d viewers, %s", s.set.Videos, s.set.Viewers, s.layout.Name)
	bar := s.r.bar(s.set.Total(), about)
	err := s.layout.Fill(ctx, s.srv, s.set, func(viewers int) { _ = bar.Add(viewers) })
	if err != nil {
		return fmt.Errorf("fill with %s: %w", about, err)
	}
	s.filled, s.touched = time.Now(), false
	return errors.Join(bar.Finish(), s.srv.Settle(ctx))
}

// bar is a progress bar, which goes away when it is full.
func (r *Runner) bar(size int64, about string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(r.Progress),
		progressbar.OptionSetDescription(about),
		progressbar.OptionThrottle(200*time.Millisecond),
		progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(),
	)
}

// sample is one measured pass.
type sample struct {
	wall, cpu, longest time.Duration
	trips, viewers     int64
}

// pass measures the first pass of a new contender, over the address given: the
// server's own, or a proxy's.
func (s *stage) pass(ctx context.Context, kind contender.Kind, addr string) (sample, error) {
	var trips atomic.Int64
	c, err := kind.New(addr, s.set, &trips)
	if err != nil {
		return sample{}, err
	}
	result, err := s.measure(ctx, kind, c, &trips)
	if err == nil {
		err = s.check(ctx, kind, result.viewers)
	}
	return result, errors.Join(err, c.Close())
}

// measure measures a pass. Somebody else has to check what it counted.
func (s *stage) measure(ctx context.Context, kind contender.Kind, c contender.Contender, trips *atomic.Int64) (sample, error) {
	s.touched = true
	runtime.GC() // nobody pays for what another left
	end, err := s.srv.Watch(ctx)
	if err != nil {
		return sample{}, err
	}
	trips.Store(0)
	start := time.Now()
	viewers, err := c.Pass(ctx)
	wall := time.Since(start)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", kind.Name, err)
	}
	reading, err := end()
	return sample{wall: wall, cpu: reading.CPU, longest: reading.Longest, trips: trips.Load(), viewers: viewers}, err
}

// check fails where a contender returned or published another number of viewers
// than there are.
func (s *stage) check(ctx context.Context, kind contender.Kind, viewers int64) error {
	if want := kind.Viewers(s.set); viewers != want {
		return fmt.Errorf("%s counted %d viewers, want %d", kind.Name, viewers, want)
	}
	if kind.All || kind.Layout.Count == "" {
		return nil
	}
	published, err := kind.Layout.Published(ctx, s.srv, s.set)
	if err != nil {
		return err
	}
	if want := s.set.Fresh(); published != want {
		return fmt.Errorf("%s published %d viewers, want %d", kind.Name, published, want)
	}
	return nil
}
