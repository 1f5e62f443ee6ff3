package contender

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
)

// Keys of the layout with sorted sets: viewers by when they were last seen.
const (
	zsetOnline = prefix + ":seen:"
	zsetCount  = prefix + ":count:"
)

type zset struct{ rdb redis.UniversalClient }

func newZset(addr string, _ dataset.Set, trips *atomic.Int64) (Contender, error) {
	rdb, err := connect(addr, trips)
	return &zset{rdb: rdb}, err
}

func (z *zset) Pass(ctx context.Context) (viewers int64, err error) {
	now, err := z.rdb.Time(ctx).Result()
	if err != nil {
		return 0, err
	}
	oldest := "(" + strconv.FormatInt(now.Add(-dataset.Window).Unix(), 10)
	err = scanPages(ctx, z.rdb, zsetOnline+"*", func(names []string) error {
		n, err := z.count(ctx, names, oldest)
		viewers += n
		return err
	})
	return viewers, err
}

func (z *zset) count(ctx context.Context, names []string, oldest string) (viewers int64, err error) {
	pipe := z.rdb.Pipeline()
	left := make([]*redis.IntCmd, len(names))
	for i, name := range names {
		pipe.ZRemRangeByScore(ctx, name, "-inf", oldest)
		left[i] = pipe.ZCard(ctx, name)
	}
	if err := exec(ctx, pipe); err != nil {
		return 0, err
	}
	pipe = z.rdb.Pipeline()
	for i, name := range names {
		viewers += left[i].Val()
		pipe.Set(ctx, zsetCount+strings.TrimPrefix(name, zsetOnline), left[i].Val(), dataset.CountTTL)
	}
	return viewers, exec(ctx, pipe)
}

func (z *zset) Close() error { return z.rdb.Close() }
