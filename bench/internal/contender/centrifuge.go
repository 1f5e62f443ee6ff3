package contender

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/centrifugal/centrifuge"
	"golang.org/x/sync/errgroup"

	"headcount/bench/internal/dataset"
)

// inParallel is how many calls of centrifuge are under way at once: its client
// pipelines what runs side by side.
const inParallel = 128

// presence counts by centrifuge's presence manager. It is told the channels,
// which a program that uses centrifuge knows.
type presence struct {
	shard   *centrifuge.RedisShard
	manager *centrifuge.RedisPresenceManager
	set     dataset.Set
}

func newCentrifuge(addr string, set dataset.Set, _ *atomic.Int64) (Contender, error) {
	return newPresence(addr, set, false, dataset.Window)
}

func newCentrifugeUsers(addr string, set dataset.Set, _ *atomic.Int64) (Contender, error) {
	return newPresence(addr, set, true, dataset.Window)
}

func newPresence(addr string, set dataset.Set, users bool, ttl time.Duration) (*presence, error) {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		return nil, err
	}
	const patience = time.Minute
	shard, err := centrifuge.NewRedisShard(node, centrifuge.RedisShardConfig{Address: addr, IOTimeout: patience})
	if err != nil {
		return nil, err
	}
	manager, err := centrifuge.NewRedisPresenceManager(node, centrifuge.RedisPresenceManagerConfig{
		PresenceTTL:       ttl,
		Shards:            []*centrifuge.RedisShard{shard},
		EnableUserMapping: func(string) bool { return users },
		UseHashFieldTTL:   false, // Redis 7.0 has none
	})
	return &presence{shard: shard, manager: manager, set: set}, err
}

func (p *presence) Pass(ctx context.Context) (int64, error) {
	var viewers atomic.Int64
	err := p.each(ctx, func(video int) error {
		stats, err := p.manager.PresenceStats(p.set.VideoID(video))
		viewers.Add(int64(stats.NumUsers))
		return err
	})
	return viewers.Load(), err
}

// each calls work for every video, many side by side, until one fails.
func (p *presence) each(ctx context.Context, work func(video int) error) error {
	group, stopped := errgroup.WithContext(ctx)
	group.SetLimit(inParallel)
	for video := 0; video < p.set.Videos && stopped.Err() == nil; video++ {
		group.Go(func() error { return work(video) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// add makes a viewer present until the manager's TTL from now.
func (p *presence) add(video, viewer int) error {
	id := p.set.ViewerID(video, viewer)
	return p.manager.AddPresence(p.set.VideoID(video), id, &centrifuge.ClientInfo{ClientID: id, UserID: id})
}

func (p *presence) Close() error {
	p.shard.Close()
	return nil
}
