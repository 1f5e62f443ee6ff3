package subject

import (
	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/internal/keys"
	"headcount/recorder"
	"headcount/stats"
)

// statistics are those that the kind switches on.
func (s Spec) statistics(k keys.Keys, rdb redis.UniversalClient) (on recorder.Statistics, err error) {
	if s.Kind == Ours {
		return on, nil
	}
	store, err := stats.NewStore(rdb, stats.Options{Keys: k}) // which ends with the process
	if err != nil {
		return on, err
	}
	failures, err := stats.NewFailures(nil, nil)
	if err != nil {
		return on, err
	}
	on.Failed = failures.Note
	if s.Kind == AllStatistics || s.Kind == WithOnline {
		on.Online = stats.NewOnline(store, dataset.Window, dataset.KeyTTL)
	}
	if s.Kind == AllStatistics || s.Kind == WithUniques {
		on.Uniques = stats.NewUniques(store)
	}
	if s.Kind == AllStatistics || s.Kind == WithPlays {
		on.Plays = stats.NewPlays(store, failures)
	}
	return on, nil
}
