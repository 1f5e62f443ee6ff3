package contender

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/internal/keys"
)

// floor only reads: what any pass over the hashes costs at the least.
type floor struct {
	rdb  redis.UniversalClient
	keys keys.Keys
}

func newFloor(addr string, _ dataset.Set, trips *atomic.Int64) (Contender, error) {
	rdb, err := connect(addr, trips)
	return &floor{rdb: rdb, keys: productKeys()}, err
}

// Pass returns how many viewers it has read, stale ones and repeated ones included.
func (f *floor) Pass(ctx context.Context) (viewers int64, err error) {
	err = scanPages(ctx, f.rdb, f.keys.OnlinePattern(), func(names []string) error {
		n, err := f.read(ctx, names)
		viewers += n
		return err
	})
	return viewers, err
}

// read reads hashes to their end, a page of each in one round trip.
func (f *floor) read(ctx context.Context, names []string) (viewers int64, err error) {
	open := make([]string, 0, len(names))
	for _, name := range names {
		if !strings.HasPrefix(name, f.keys.Count("")) {
			open = append(open, name)
		}
	}
	cursors := make([]uint64, len(open))
	for len(open) > 0 {
		pipe := f.rdb.Pipeline()
		pages := make([]*redis.ScanCmd, len(open))
		for i, name := range open {
			pages[i] = pipe.HScan(ctx, name, cursors[i], "", pageSize)
		}
		if err := exec(ctx, pipe); err != nil {
			return 0, err
		}
		more := 0
		for i, page := range pages {
			fields, next := page.Val()
			viewers += int64(len(fields) / 2)
			if next != 0 {
				open[more], cursors[more] = open[i], next
				more++
			}
		}
		open, cursors = open[:more], cursors[:more]
	}
	return viewers, nil
}

func (f *floor) Close() error { return f.rdb.Close() }
