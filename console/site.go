package console

import (
	"context"
	"errors"
	"time"

	"headcount/internal/lastpass"
)

// site is what the page shows, but for single videos. Times are Unix
// milliseconds by Redis's clock.
type site struct {
	Program  string    `json:"program"`
	Version  string    `json:"version"`
	Kind     string    `json:"kind,omitempty"`
	Kinds    []string  `json:"kinds,omitempty"` // more than one, or none
	Now      *int64    `json:"now"`
	WindowS  int64     `json:"window_s"`
	Interval int64     `json:"interval_ms"`
	Shown    int64     `json:"history_ms"` // how much of the history is shown at most; 0: it is off
	Warnings []warning `json:"warnings"`

	Viewers  watching        `json:"viewers"`
	Online   figure[int64]   `json:"online"`
	Uniques  figure[int64]   `json:"uniques"` // of 24 hours
	Plays    figure[plays]   `json:"plays"`
	Peaks    figure[peaks]   `json:"peaks"`
	Top      figure[[]entry] `json:"top"`
	History  figure[points]  `json:"history"`
	Leader   leader          `json:"leader"`
	Passes   figure[[]pass]  `json:"passes"` // the latest first
	Rates    *rates          `json:"rates"`  // null: this program records nothing
	Redis    redisState      `json:"redis"`
	Settings []Setting       `json:"settings"`

	record  lastpass.Record
	metrics sample
}

// watching is how many are watching, as far as known.
type watching struct {
	Now    *int64 `json:"now"`
	Videos *int64 `json:"videos,omitempty"`
	AsOf   *int64 `json:"as_of"`
}

// leader is the worker that makes the passes.
type leader struct {
	Holder string `json:"holder"` // who made the last one
	Since  *int64 `json:"since"`
	Held   *bool  `json:"held"` // whether there is a lease now
}

// plays are how often something was started.
type plays struct {
	Total int64 `json:"total"`
	Day   int64 `json:"day"` // the last 24 hours
}

type peaks struct {
	Today   int64  `json:"today"`
	TodayAt *int64 `json:"today_at"`
	Ever    int64  `json:"ever"`
	EverAt  *int64 `json:"ever_at"`

	TimeZone string `json:"time_zone"` // whose day today is
}

type entry struct {
	VideoID string `json:"video_id"`
	Viewers int64  `json:"viewers"`
}

// points are a history, the oldest first.
type points struct {
	At      []int64 `json:"at"`
	Viewers []int64 `json:"viewers"`
}

// pass is a lastpass.Pass whose times are milliseconds, as all of the page's.
type pass struct {
	lastpass.Pass
	StartedAt  int64 `json:"started_at"`
	FinishedAt int64 `json:"finished_at"`
}

const (
	topLimit = 20
	day      = "24h"
)

// site asks for everything at once.
func (c *Console) site(ctx context.Context) *site {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	s := &site{
		Program: c.o.Program, Version: c.o.Version, Settings: c.o.Settings(),
		Kind: c.o.Kind, Kinds: c.choice(),
		WindowS: int64(c.o.Window() / time.Second), Interval: c.o.Interval().Milliseconds(),
		Shown: min(c.o.History, 24*time.Hour).Milliseconds(),
	}
	statistics := &c.o.Statistics
	sideBySide(
		func() { s.Now = c.now(ctx) },
		func() { s.record, s.Passes = c.passes(ctx) },
		func() { s.Leader.Held = c.held(ctx) },
		func() { s.Redis = c.redis(ctx) },
		func() {
			s.Online = ask(statistics.Online, func(o Online) (int64, error) { n, _, err := o.Count(ctx); return n, err })
		},
		func() {
			s.Top = ask(statistics.Top, func(t Top) ([]entry, error) { return top(ctx, t) })
		},
		func() { s.Uniques = c.uniques(ctx, "") },
		func() { s.Plays = c.plays(ctx, "") },
		func() { s.Peaks = c.peaks(ctx, "") },
		func() { s.History = c.history(ctx, "") },
		func() { s.metrics = c.measure() },
	)
	s.Viewers = c.viewers(s)
	s.Leader.Since = millis(s.record.LeadingSince)
	if len(s.record.Recent) > 0 {
		s.Leader.Holder = s.record.Recent[0].Holder
	}
	s.Rates = c.samples.add(s.metrics)
	s.Warnings = c.warnings(s)
	return s
}

// choice is the kinds that can be shown, where there is any choice.
func (c *Console) choice() []string {
	if len(c.o.Kinds) < 2 {
		return nil
	}
	return c.o.Kinds
}

// after returns s without the points of its history until that time.
func (s *site) after(since int64) *site {
	if s.History.Value == nil {
		return s
	}
	all, from := s.History.Value, 0
	for from < len(all.At) && all.At[from] <= since {
		from++
	}
	part := *s
	part.History.Value = &points{all.At[from:], all.Viewers[from:]}
	return &part
}

func (c *Console) now(ctx context.Context) *int64 {
	now, err := c.rdb.Time(ctx).Result()
	if err != nil {
		return nil
	}
	return millis(now)
}

func (c *Console) held(ctx context.Context) *bool {
	n, err := c.rdb.Exists(ctx, c.o.Lease).Result()
	if err != nil {
		return nil
	}
	held := n > 0
	return &held
}

func (c *Console) passes(ctx context.Context) (lastpass.Record, figure[[]pass]) {
	record, err := lastpass.Read(ctx, c.rdb, c.o.Keys.LastPass())
	if err != nil {
		return record, figure[[]pass]{Failed: true}
	}
	all := make([]pass, len(record.Recent))
	for i, p := range record.Recent {
		all[i] = pass{p, p.StartedAt * 1000, p.FinishedAt * 1000}
	}
	return record, figure[[]pass]{Value: &all}
}

// viewers are those of the last complete pass: a partial one has not seen all.
func (c *Console) viewers(s *site) watching {
	w := watching{AsOf: c.knownAsOf(s.record.CompletedAt, s.Now)}
	if w.AsOf == nil {
		return w
	}
	for _, p := range s.record.Recent {
		if p.Errors == 0 {
			w.Now, w.Videos = &p.Viewers, &p.Videos
			return w
		}
	}
	if h := s.History.Value; h != nil && len(h.Viewers) > 0 { // all twenty are partial
		w.Now = &h.Viewers[len(h.Viewers)-1]
	}
	return w
}

// knownAsOf is when a complete pass finished, nil when that is too long ago.
func (c *Console) knownAsOf(finished time.Time, now *int64) *int64 {
	at := millis(finished)
	if at == nil || now == nil || *now-*at > c.o.CountTTL.Milliseconds() {
		return nil
	}
	return at
}

func top(ctx context.Context, t Top) ([]entry, error) {
	ids, viewers, _, err := t.List(ctx, topLimit)
	all := make([]entry, len(ids))
	for i, id := range ids {
		all[i] = entry{id, viewers[i]}
	}
	return all, err
}

func (c *Console) uniques(ctx context.Context, videoID string) figure[int64] {
	return ask(c.o.Statistics.Uniques, func(u Uniques) (int64, error) {
		n, _, _, err := u.Count(ctx, videoID, day)
		return n, err
	})
}

func (c *Console) plays(ctx context.Context, videoID string) figure[plays] {
	return ask(c.o.Statistics.Plays, func(p Plays) (plays, error) {
		total, _, hours, err := p.Count(ctx, videoID, "hour", day)
		started := plays{Total: total}
		for _, n := range hours {
			started.Day += n
		}
		return started, err
	})
}

func (c *Console) peaks(ctx context.Context, videoID string) figure[peaks] {
	return ask(c.o.Statistics.Peaks, func(p Peaks) (peaks, error) {
		today, todayAt, ever, everAt, err := p.Get(ctx, videoID)
		return peaks{today, millis(todayAt), ever, millis(everAt), c.o.TimeZone}, err
	})
}

// badInput is an error of a question, here of one that goes further back than what is kept.
type badInput interface {
	error
	BadInput() (field, reason string)
}

// history is of 24 hours, or of what is kept where that is less.
func (c *Console) history(ctx context.Context, videoID string) figure[points] {
	return ask(c.o.Statistics.History, func(h History) (points, error) {
		at, viewers, err := h.Points(ctx, videoID, day)
		if _, refused := errors.AsType[badInput](err); refused {
			at, viewers, err = h.Points(ctx, videoID, "")
		}
		p := points{make([]int64, len(at)), append([]int64{}, viewers...)}
		for i, t := range at {
			p.At[i] = t.UnixMilli()
		}
		return p, err
	})
}
