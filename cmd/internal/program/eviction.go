package program

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headcount/internal/redisclient"
)

// WatchEviction is a service that warns of a Redis which makes room by dropping viewers who are watching. It asks when
// the program starts, again and again until Redis has answered, and is done then.
func WatchEviction(ctx context.Context, p *Program) error {
	rdb, err := p.Redis()
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }() // nothing is under way any more
	const pause = 2 * time.Second
	for !p.WarnOfEviction(ctx, rdb) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
	return nil
}

// WarnOfEviction warns of a Redis that makes room by dropping viewers who are watching. It reports whether that could
// be told, or will not be told another time either.
func (p *Program) WarnOfEviction(ctx context.Context, rdb redis.UniversalClient) (done bool) {
	policies, err := redisclient.EvictionPolicies(ctx, rdb)
	if len(policies) > 0 {
		slices.Sort(policies)
		p.Log.Warn("Redis drops viewers who are watching when it is full: set its maxmemory-policy to noeviction",
			zap.Strings("maxmemory_policy", slices.Compact(policies)))
		return true
	}
	if redis.HasErrorPrefix(err, "NOPERM") {
		p.Log.Warn("cannot tell whether Redis drops viewers when it is full: this user may not ask for it by INFO", zap.Error(err))
		return true
	}
	if err == nil {
		p.Log.Debug("Redis keeps what it holds when it is full")
	}
	return err == nil
}
