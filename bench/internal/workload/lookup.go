package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"headcount/bench/internal/load"
	"headcount/bench/internal/proxy"
	"headcount/bench/internal/report"
	"headcount/bench/internal/subject"
)

// lookupCached asks for some videos far more often than they change.
func lookupCached(ctx context.Context, r *Runner) (_ report.Table, err error) {
	m, err := r.match(ctx, r.audience(busyVideos))
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	players, err := m.addAll(ctx, load.Load{Kind: load.Lookup, Connections: manyConnections}, subject.Ours, subject.Constant)
	if err != nil {
		return report.Table{}, err
	}
	if err := m.run(ctx); err != nil {
		return report.Table{}, err
	}
	t := m.table("cached", fmt.Sprintf("lookups of %d videos", m.set.Videos))
	t.Notes = []string{players[0].note(players[1])}
	t.Bars = []report.Bar{{Measure: "lookups per second, ours ÷ constant", Value: players[0].rate() / players[1].rate(), AtLeast: true, Limit: 0.85}}
	return t, nil
}

const coldVideos = 100

// lookupCold asks for videos that the server knows nothing of, and counts how
// often it asks Redis.
func lookupCold(ctx context.Context, r *Runner) (_ report.Table, err error) {
	set := r.audience(coldVideos)
	set.Videos = coldVideos * (r.Repetitions + 1) // each repetition asks for others
	m, err := r.match(ctx, set)
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	p, err := proxy.New(ctx, m.srv.Addr, 0)
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ours, err := subject.Start(ctx, subject.Spec{Kind: subject.Ours, Redis: p.Addr()})
	if err != nil {
		return report.Table{}, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()

	var turns, took []float64
	for i := range r.Repetitions + 1 {
		before, start := p.Turns(), time.Now()
		if err := askBatch(ctx, ours.URL, m, i*coldVideos); err != nil {
			return report.Table{}, err
		}
		if i > 0 { // the first connects, too
			turns, took = append(turns, float64(p.Turns()-before)), append(took, report.MS(time.Since(start)))
		}
	}
	return report.Table{
		Workload: "cold",
		About:    fmt.Sprintf("lookups of %d videos at once, none of them cached; medians of %d", coldVideos, r.Repetitions),
		Columns:  []report.Column{{Key: "round_trips", Title: "round trips"}, {Key: "wall_ms", Title: "wall ms"}},
		Rows:     []report.Row{{Name: subject.Ours, Figures: []float64{report.Median(turns), report.Median(took)}}},
		Bars:     []report.Bar{{Measure: "round trips to Redis", Value: report.Median(turns), Limit: 1}},
	}, nil
}

// askBatch looks up coldVideos videos, from the one with that number on.
func askBatch(ctx context.Context, server string, m *match, first int) error {
	query := url.Values{}
	for i := range coldVideos {
		query.Add("video_id", m.set.VideoID(first+i))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/v1/viewers?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("lookup: %s: %s", resp.Status, body)
	}
	return err
}
