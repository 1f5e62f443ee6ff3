package serve

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headcount/aggregator"
	"headcount/api"
	"headcount/cmd/internal/program"
	"headcount/internal/config"
	"headcount/lookup"
	"headcount/recorder"
	"headcount/stats"
)

// kinds are what counts the videos of each kind.
type kinds struct {
	*program.Program
	plays, reads redis.UniversalClient
	timeout      time.Duration
	tokens       func(kind string) api.Tokens

	all     []api.Kind
	closers []func(context.Context)
	online  *stats.Online // of the site, kept by the first kind; nil: off
}

// build builds all kinds. Call close in any case.
func (s *kinds) build() error {
	for _, k := range s.Kinds() {
		if err := s.add(k); err != nil {
			return err
		}
	}
	return nil
}

func (s *kinds) add(k program.Kind) error {
	lookups, err := newLookup(s.Program, k, s.reads, s.timeout)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func(context.Context) { lookups.Close() })
	statistics, err := newStatistics(s.Program, k, s.reads, s.timeout)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func(context.Context) { statistics.store.Close() })
	first := len(s.all) == 0
	if first {
		s.online = newOnline(s.Program, statistics.store)
	}
	if s.online != nil { // who watches anything is on the site
		statistics.recorder.Online, statistics.api.Online = s.online, s.online
	}
	rec := newRecorder(s.Program, k, s.plays, s.timeout, statistics.recorder)
	s.closers = append(s.closers, func(ctx context.Context) { flush(ctx, rec, s.timeout, k.Log) })
	if first && s.online != nil {
		statistics.api.Site = rec
	}
	s.all = append(s.all, api.Kind{
		Name: k.Name, Recorder: rec, Lookup: lookups, Statistics: statistics.api, Tokens: s.tokens(k.Name),
	})
	return nil
}

// serve has the API answer for all kinds or, where none is listed, for the only one.
func (s *kinds) serve(o *api.Options) {
	if only := s.all[0]; only.Name == "" {
		o.Recorder, o.Lookup, o.Statistics = only.Recorder, only.Lookup, only.Statistics
		return
	}
	o.Kinds = s.all
}

// close writes what statistics still have to write, and gives back what build took.
// ctx has ended by now.
func (s *kinds) close(ctx context.Context) {
	for _, c := range slices.Backward(s.closers) {
		c(ctx)
	}
}

// flush writes what statistics still have to write. ctx has ended by now.
func flush(ctx context.Context, rec *recorder.Recorder, timeout time.Duration, log *zap.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := rec.Flush(ctx); err != nil {
		log.Warn("the last plays are not in the statistics", zap.Error(err))
	}
}

func newRecorder(p *program.Program, k program.Kind, rdb redis.UniversalClient, timeout time.Duration, s recorder.Statistics) *recorder.Recorder {
	c := p.Config.Config()
	rec := recorder.New(rdb, recorder.Options{
		Keys:       k.Keys,
		KeyTTL:     c.KeyTTL,
		CountTTL:   c.CountTTL,
		Timeout:    timeout,
		MaxViewers: c.Recorder.MaxViewers,
		Window:     c.Window,
		Statistics: s,
		Logger:     k.Log,
		Registerer: k.Metrics,
	})
	p.OnChange(func(c config.Config) { rec.SetWindow(c.Window) })
	return rec
}

func newLookup(p *program.Program, k program.Kind, rdb redis.UniversalClient, timeout time.Duration) (*lookup.Lookup, error) {
	c := p.Config.Config()
	o := lookup.Options{
		Keys:       k.Keys,
		CountTTL:   c.CountTTL,
		Cache:      c.Lookup.Cache,
		Timeout:    timeout,
		Registerer: k.Metrics,
	}
	if c.Lookup.OnMiss == "compute" {
		counter := aggregator.New(rdb, aggregator.Options{
			Keys:     k.Keys,
			Window:   c.Window,
			KeyTTL:   c.KeyTTL,
			CountTTL: c.CountTTL,
			Logger:   k.Log,
		})
		p.OnChange(func(c config.Config) { counter.SetWindow(c.Window) })
		o.Counter = counter
	}
	return lookup.New(rdb, o)
}
