package contender

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/bench/internal/dataset"
	"headcount/stats"
)

type ours struct {
	rdb redis.UniversalClient
	*aggregator.Aggregator
}

func newOurs(addr string, _ dataset.Set, trips *atomic.Int64) (Contender, error) {
	rdb, err := connect(addr, trips)
	if err != nil {
		return nil, err
	}
	return ours{rdb: rdb, Aggregator: aggregator.New(rdb, oursOptions())}, nil
}

func oursOptions() aggregator.Options {
	return aggregator.Options{
		Keys:     productKeys(),
		Window:   dataset.Window,
		KeyTTL:   dataset.KeyTTL,
		CountTTL: dataset.CountTTL,
		Holder:   "bench",
	}
}

// oursWithStatistics is ours with all that passes write for statistics.
type oursWithStatistics struct {
	ours
	store *stats.Store
}

func newOursWithStatistics(addr string, _ dataset.Set, trips *atomic.Int64) (Contender, error) {
	rdb, err := connect(addr, trips)
	if err != nil {
		return nil, err
	}
	store, err := stats.NewStore(rdb, stats.Options{Keys: productKeys()})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	failures, err := stats.NewFailures(nil, nil)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	const day = 24 * time.Hour
	passes := &stats.Passes{
		Online: stats.NewOnline(store, dataset.Window, dataset.KeyTTL), Plays: stats.NewPlays(store, failures),
		Top: stats.NewTop(store, 1000, dataset.CountTTL), Peaks: stats.NewPeaks(store), History: stats.NewHistory(store, day),
		KeyTTL: dataset.KeyTTL, Failures: failures,
	}
	o := oursOptions()
	o.Observe = func(began time.Time) aggregator.Observer { return passes.Begin(began) }
	return oursWithStatistics{ours{rdb: rdb, Aggregator: aggregator.New(rdb, o)}, store}, nil
}

func (o oursWithStatistics) Close() error {
	o.store.Close()
	return o.ours.Close()
}

func (o ours) Pass(ctx context.Context) (int64, error) {
	sum, err := o.Aggregator.Pass(ctx)
	return sum.Viewers, err
}

func (o ours) Close() error { return o.rdb.Close() }
