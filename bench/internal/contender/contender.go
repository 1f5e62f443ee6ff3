// Package contender holds the ways to count viewers that are compared. Each is
// written as somebody who means it would write it.
package contender

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/bench/internal/server"
	"headcount/internal/keys"
)

// A Contender makes passes over one dataset.
type Contender interface {
	// Pass counts every video's viewers once and returns their sum.
	Pass(ctx context.Context) (viewers int64, err error)
	Close() error
}

// Kind is a way to count.
type Kind struct {
	Name   string
	About  string // for the notes under a table
	Layout Layout // how the viewers lie in Redis
	// All is set for one that only reads: it sees stale viewers too.
	All bool
	// New connects a contender. Its round trips are added to trips, unless its
	// client has no way to count them.
	New func(addr string, set dataset.Set, trips *atomic.Int64) (Contender, error)
}

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{
		{Name: "ours", About: "headcount's aggregator", Layout: Hashes, New: newOurs},
		{Name: "floor", About: "the same hashes read by pipelined HSCAN, nothing done with them", Layout: Hashes, All: true, New: newFloor},
		{Name: "plain", About: "SCAN everything, then HSCAN, HDEL, HLEN, SET one by one", Layout: Hashes, New: newPlain},
		{Name: "lua", About: "a script pages through each hash and evicts, pipelined", Layout: Hashes, New: newLua},
		{Name: "zset", About: "a sorted set per video: ZREMRANGEBYSCORE, ZCARD, SET, pipelined", Layout: SortedSets, New: newZset},
		{Name: "centrifuge", About: "centrifugal/centrifuge's PresenceStats per video, no user mapping", Layout: Presence, New: newCentrifuge},
		{Name: "centrifuge-users", About: "the same with user mapping", Layout: PresenceUsers, New: newCentrifugeUsers},
	}
}

// WithStatistics is ours with statistics on, which takes part in no comparison with others.
func WithStatistics() Kind {
	return Kind{Name: "ours, all statistics", About: "headcount's aggregator with all statistics on", Layout: Hashes, New: newOursWithStatistics}
}

// Find returns the kind of that name.
func Find(name string) (Kind, error) {
	for _, k := range append(Kinds(), WithStatistics()) {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("no contender is called %q", name)
}

// Viewers is what a pass has to return.
func (k Kind) Viewers(set dataset.Set) int64 {
	if k.All {
		return set.Total()
	}
	return set.Fresh()
}

// prefix of all keys, as by default in the product.
const prefix = "video"

func productKeys() keys.Keys { return keys.New(prefix) }

// Batch sizes of the contenders that pipeline.
const (
	scanCount = 1000 // keys that one SCAN looks at
	pageSize  = 1024 // viewers in one page of a large hash
)

// connect returns a client that is connected, and whose round trips are counted
// from here on.
func connect(addr string, trips *atomic.Int64) (redis.UniversalClient, error) {
	rdb, err := server.Connect(addr)
	if err != nil {
		return nil, err
	}
	if err := rdb.Ping(context.Background()).Err(); err != nil { // bounded by the client's time-out
		return nil, errors.Join(err, rdb.Close())
	}
	rdb.AddHook(counter{trips})
	return rdb, nil
}

// counter is a go-redis hook: one command or one pipeline is one round trip.
type counter struct{ trips *atomic.Int64 }

func (c counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.trips.Add(1)
		return next(ctx, cmd)
	}
}

func (c counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.trips.Add(1)
		return next(ctx, cmds)
	}
}

// scanPages calls work with the names that match pattern, a page at a time.
func scanPages(ctx context.Context, rdb redis.UniversalClient, pattern string, work func(names []string) error) error {
	for cursor := uint64(0); ; {
		names, next, err := rdb.Scan(ctx, cursor, pattern, scanCount).Result()
		if err != nil {
			return err
		}
		if err := work(names); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// exec runs a pipeline; a key that was not there is no error.
func exec(ctx context.Context, pipe redis.Pipeliner) error {
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return nil
}
