package serve

import (
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/api"
	"headcount/cmd/internal/program"
	"headcount/internal/config"
	"headcount/recorder"
	"headcount/stats"
)

// statistics are those that are on, as they are written and as they are read.
type statistics struct {
	store    *stats.Store
	recorder recorder.Statistics
	api      api.Statistics
}

// newStatistics builds what the configuration switches on; rdb reads. Who is online
// is for the caller to add.
func newStatistics(p *program.Program, k program.Kind, rdb redis.UniversalClient, timeout time.Duration) (*statistics, error) {
	c := p.Config.Config()
	failures, err := stats.NewFailures(k.Log, k.Metrics)
	if err != nil {
		return nil, err
	}
	store, err := stats.NewStore(rdb, stats.Options{
		Keys: k.Keys, Zone: c.Location(), Cache: c.Lookup.Cache, Timeout: timeout,
	})
	if err != nil {
		return nil, err
	}
	s := &statistics{store: store}
	s.recorder.Failed = failures.Note
	if c.Stats.Uniques {
		uniques := stats.NewUniques(store)
		s.recorder.Uniques, s.api.Uniques = uniques, uniques
	}
	if c.Stats.Plays {
		plays := stats.NewPlays(store, failures)
		s.recorder.Plays, s.api.Plays = plays, plays
	}
	if c.Stats.Top > 0 {
		s.api.Top = stats.NewTop(store, c.Stats.Top, c.CountTTL)
	}
	if c.Stats.Peaks {
		s.api.Peaks = stats.NewPeaks(store)
	}
	if c.Stats.History > 0 {
		s.api.History = stats.NewHistory(store, c.Stats.History)
	}
	return s, nil
}

// newOnline keeps who is on the site, nil where that is off.
func newOnline(p *program.Program, store *stats.Store) *stats.Online {
	c := p.Config.Config()
	if !c.Stats.Online {
		return nil
	}
	online := stats.NewOnline(store, c.Window, c.KeyTTL)
	p.OnChange(func(c config.Config) { online.SetWindow(c.Window) })
	return online
}
