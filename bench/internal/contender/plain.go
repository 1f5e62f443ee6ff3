package contender

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/internal/keys"
)

// plain is the loop that people write first: one command at a time.
type plain struct {
	rdb  redis.UniversalClient
	keys keys.Keys
}

func newPlain(addr string, _ dataset.Set, trips *atomic.Int64) (Contender, error) {
	rdb, err := connect(addr, trips)
	return &plain{rdb: rdb, keys: productKeys()}, err
}

func (p *plain) Pass(ctx context.Context) (viewers int64, err error) {
	now, err := p.rdb.Time(ctx).Result()
	if err != nil {
		return 0, err
	}
	oldest := now.Add(-dataset.Window).Unix()
	names, err := p.videos(ctx)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		n, err := p.count(ctx, name, oldest)
		if err != nil {
			return 0, err
		}
		viewers += n
	}
	return viewers, nil
}

// videos returns the names of all hashes, each once.
func (p *plain) videos(ctx context.Context) ([]string, error) {
	var names []string
	scan := p.rdb.Scan(ctx, 0, p.keys.OnlinePattern(), scanCount).Iterator()
	for scan.Next(ctx) {
		if !strings.HasPrefix(scan.Val(), p.keys.Count("")) {
			names = append(names, scan.Val())
		}
	}
	slices.Sort(names)
	return slices.Compact(names), scan.Err()
}

func (p *plain) count(ctx context.Context, name string, oldest int64) (int64, error) {
	viewer := ""
	scan := p.rdb.HScan(ctx, name, 0, "", pageSize).Iterator()
	for field := true; scan.Next(ctx); field = !field {
		if field {
			viewer = scan.Val()
			continue
		}
		at, err := strconv.ParseInt(scan.Val(), 10, 64)
		if err != nil || at < oldest {
			if err := p.rdb.HDel(ctx, name, viewer).Err(); err != nil {
				return 0, err
			}
		}
	}
	if err := scan.Err(); err != nil {
		return 0, err
	}
	viewers, err := p.rdb.HLen(ctx, name).Result()
	if err != nil {
		return 0, err
	}
	video, _, _ := p.keys.Parse(name)
	return viewers, p.rdb.Set(ctx, p.keys.Count(video), viewers, dataset.CountTTL).Err()
}

func (p *plain) Close() error { return p.rdb.Close() }
