package contender

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/bench/internal/dataset"
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
	return ours{rdb: rdb, Aggregator: aggregator.New(rdb, aggregator.Options{
		Keys:     productKeys(),
		Window:   dataset.Window,
		KeyTTL:   dataset.KeyTTL,
		CountTTL: dataset.CountTTL,
		Holder:   "bench",
	})}, nil
}

func (o ours) Pass(ctx context.Context) (int64, error) {
	sum, err := o.Aggregator.Pass(ctx)
	return sum.Viewers, err
}

func (o ours) Close() error { return o.rdb.Close() }
