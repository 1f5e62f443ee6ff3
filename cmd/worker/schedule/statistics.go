package schedule

import (
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/cmd/internal/program"
	"headcount/internal/config"
	"headcount/stats"
)

// observe returns what has passes of a kind write the statistics that the configuration
// switches on; the first kind's trim who is online too. Close the store when they are over.
func observe(p *program.Program, k program.Kind, rdb redis.UniversalClient, first bool) (func(time.Time) aggregator.Observer, *stats.Store, error) {
	c := p.Config.Config()
	failures, err := stats.NewFailures(k.Log, k.Metrics)
	if err != nil {
		return nil, nil, err
	}
	store, err := stats.NewStore(rdb, stats.Options{Keys: k.Keys, Zone: c.Location()})
	if err != nil {
		return nil, nil, err
	}
	passes := &stats.Passes{KeyTTL: c.KeyTTL, Failures: failures}
	if c.Stats.Online && first {
		passes.Online = stats.NewOnline(store, c.Window, c.KeyTTL)
		p.OnChange(func(c config.Config) { passes.Online.SetWindow(c.Window) })
	}
	if c.Stats.Plays {
		passes.Plays = stats.NewPlays(store, failures)
	}
	if c.Stats.Top > 0 {
		passes.Top = stats.NewTop(store, c.Stats.Top, c.CountTTL)
	}
	if c.Stats.Peaks {
		passes.Peaks = stats.NewPeaks(store)
	}
	if c.Stats.History > 0 {
		passes.History = stats.NewHistory(store, c.Stats.History)
	}
	return func(began time.Time) aggregator.Observer { return passes.Begin(began) }, store, nil
}
