package workload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
	"headcount/bench/internal/load"
	"headcount/bench/internal/report"
	"headcount/bench/internal/server"
	"headcount/bench/internal/subject"
	"headcount/internal/keys"
	"headcount/recorder"
	"headcount/stats"
)

// statisticsPlays compares plays with all statistics on, and with each alone, with
// all off.
func statisticsPlays(ctx context.Context, r *Runner) (_ report.Table, err error) {
	m, err := r.match(ctx, r.audience(busyVideos))
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	players, err := m.addAll(ctx, load.Load{Kind: load.Play, Connections: manyConnections},
		subject.Ours, subject.AllStatistics, subject.WithOnline, subject.WithUniques, subject.WithPlays)
	if err != nil {
		return report.Table{}, err
	}
	if err := m.run(ctx); err != nil {
		return report.Table{}, err
	}
	off, all := players[0], players[1]
	off.name = "all off"
	t := m.table("plays", fmt.Sprintf("plays of %d viewers over %d videos", m.set.Total(), m.set.Videos))
	t.Notes = []string{all.note(off)}
	t.Bars = []report.Bar{
		{Measure: "Redis CPU per play, all on ÷ all off", Value: all.redisCPU() / off.redisCPU(), Limit: 1.8},
		{Measure: "plays per second, all on ÷ all off", Value: all.rate() / off.rate(), AtLeast: true, Limit: 0.85},
	}
	return t, nil
}

// statisticsPass compares passes with all statistics on and off: the first of a
// worker, which looks at every peak, and the next, when nothing has changed.
func statisticsPass(ctx context.Context, r *Runner) (_ report.Table, err error) {
	s, err := r.stage(ctx, contender.Hashes, r.manyVideos())
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, s.srv.Close()) }()
	all := contender.WithStatistics().Name
	first, next := make(map[string][]sample), make(map[string][]sample)
	for range r.Repetitions {
		for _, name := range []string{"ours", all} {
			s.touched = true
			if err := s.restore(ctx); err != nil {
				return report.Table{}, err
			}
			two, err := s.passes(ctx, name, 2)
			if err != nil {
				return report.Table{}, err
			}
			first[name], next[name] = append(first[name], two[0]), append(next[name], two[1])
		}
	}
	off, on := medians(first["ours"]), medians(first[all])
	offNext, onNext := medians(next["ours"]), medians(next[all])
	row := func(name string, f, off figures) report.Row {
		return report.Row{Name: name, Figures: []float64{f.wall, f.cpu, f.cpu / off.cpu, f.longest, f.trips}}
	}
	columns := append([]report.Column(nil), passColumns...)
	columns[2] = report.Column{Key: "redis_cpu_to_off", Title: "÷off"}
	return report.Table{
		Workload: "pass",
		About:    fmt.Sprintf("%d videos x %d viewers; medians of %d", s.set.Videos, s.set.Viewers, r.Repetitions),
		Columns:  columns,
		Rows: []report.Row{
			row("all off, first pass", off, off), row("all on, first pass", on, off),
			row("all off, next pass", offNext, offNext), row("all on, next pass", onNext, offNext),
		},
		Bars: []report.Bar{
			{Measure: "Redis CPU of a worker's first pass, all on ÷ all off", Value: on.cpu / off.cpu, Limit: 1.3},
			{Measure: "Redis CPU of the next pass, all on ÷ all off", Value: onNext.cpu / offNext.cpu, Limit: 1.3},
		},
	}, nil
}

// memoryVideos are watched by few, as most are.
const memoryVideos = 2000

// peaksAndLists is what a pass writes.
const peaksAndLists = "peaks, top, history"

// statisticsMemory shows what Redis keeps for each statistic, of an hour in which
// everybody watched one video.
func statisticsMemory(ctx context.Context, r *Runner) (report.Table, error) {
	set := dataset.Set{Videos: r.sized(memoryVideos), Viewers: 50}
	t := report.Table{
		Workload: "memory",
		About:    fmt.Sprintf("bytes in Redis for %d videos x %d viewers, after an hour", set.Videos, set.Viewers),
		Columns: []report.Column{
			{Key: "bytes_per_viewer", Title: "B/viewer"}, {Key: "bytes_per_video", Title: "B/video"},
		},
	}
	for _, name := range []string{"all off", subject.WithOnline, subject.WithUniques, subject.WithPlays, peaksAndLists} {
		bytes, err := statisticBytes(ctx, set, name)
		if err != nil {
			return report.Table{}, err
		}
		t.Rows = append(t.Rows, report.Row{Name: name, Figures: []float64{
			float64(bytes) / float64(set.Total()), float64(bytes) / float64(set.Videos),
		}})
	}
	for i := range t.Rows[1:] { // beyond the hashes
		for j := range t.Rows[i+1].Figures {
			t.Rows[i+1].Figures[j] -= t.Rows[0].Figures[j]
		}
	}
	t.Notes = []string{"uniques: of each hour, for 8 days; the others once"}
	return t, nil
}

// statisticBytes is how much memory Redis takes with one statistic on.
func statisticBytes(ctx context.Context, set dataset.Set, name string) (bytes int64, err error) {
	srv, err := server.Start(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	rdb, err := server.Connect(srv.Addr)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rdb.Close()) }()
	store, err := stats.NewStore(rdb, stats.Options{Keys: keys.New("video"), Timeout: time.Minute})
	if err != nil {
		return 0, err
	}
	defer store.Close()
	failures, err := stats.NewFailures(nil, nil)
	if err != nil {
		return 0, err
	}
	on := recorder.Statistics{Failed: failures.Note}
	switch name {
	case subject.WithOnline:
		on.Online = stats.NewOnline(store, dataset.Window, dataset.KeyTTL)
	case subject.WithUniques:
		on.Uniques = stats.NewUniques(store)
	case subject.WithPlays:
		on.Plays = stats.NewPlays(store, failures)
	}
	before, err := srv.Memory(ctx)
	if err != nil {
		return 0, err
	}
	if err := playAll(ctx, recorder.New(rdb, recorder.Options{
		Keys: keys.New("video"), KeyTTL: dataset.KeyTTL, CountTTL: dataset.CountTTL, Window: dataset.Window,
		Timeout: time.Minute, Statistics: on,
	}), set); err != nil {
		return 0, err
	}
	if name == peaksAndLists {
		c, err := contender.WithStatistics().New(srv.Addr, set, new(atomic.Int64))
		if err != nil {
			return 0, err
		}
		_, err = c.Pass(ctx)
		if err := errors.Join(err, c.Close()); err != nil {
			return 0, err
		}
	}
	after, err := srv.Memory(ctx)
	return after - before, err
}

// playAll has each viewer play once.
func playAll(ctx context.Context, rec *recorder.Recorder, set dataset.Set) error {
	for video := range set.Videos {
		videos, viewers := make([]string, set.Viewers), make([]string, set.Viewers)
		for i := range viewers {
			videos[i], viewers[i] = set.VideoID(video), set.ViewerID(video, i)
		}
		_, errs := rec.PlayAll(ctx, videos, viewers)
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return rec.Flush(ctx)
}
