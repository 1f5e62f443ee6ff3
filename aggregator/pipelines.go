package aggregator

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

// pipelines are commands that go out together, by the client that sends them.
type pipelines map[redis.UniversalClient]redis.Pipeliner

func (p pipelines) of(client redis.UniversalClient) redis.Pipeliner {
	if p[client] == nil {
		p[client] = client.Pipeline()
	}
	return p[client]
}

// exec sends pipelines, and notes which masters did not answer. Each command
// has its own error.
func (s *sweep) exec(ctx context.Context, pipes pipelines) {
	var sent sync.WaitGroup
	for _, pipe := range pipes {
		if pipe.Len() == 0 {
			continue
		}
		sent.Go(func() {
			if cmds, err := pipe.Exec(ctx); err != nil {
				s.down.note(ctx, s.rdb, cmds)
			}
		})
	}
	sent.Wait()
}

// errUnreachable is the error of videos on a master that has not answered
// before in the same pass.
var errUnreachable = errors.New("its master did not answer")

// unreachable are the masters of a cluster that did not answer in a pass. They
// are not waited for again: a small part of the videos has keys on them in
// every batch, and each batch would take several timeouts.
type unreachable struct {
	mu    sync.Mutex
	addrs map[string]struct{}
}

func (u *unreachable) add(addr string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.addrs == nil {
		u.addrs = make(map[string]struct{})
	}
	u.addrs[addr] = struct{}{}
}

func (u *unreachable) is(addr string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, down := u.addrs[addr]
	return down
}

// note takes in a pipeline of commands that have a key as their first argument.
func (u *unreachable) note(ctx context.Context, rdb redis.UniversalClient, cmds []redis.Cmder) {
	for _, cmd := range cmds {
		var answer redis.Error
		if err := cmd.Err(); err == nil || errors.As(err, &answer) || len(cmd.Args()) < 2 {
			continue
		}
		key, _ := cmd.Args()[1].(string)
		if addr := masterOf(ctx, rdb, key); addr != "" {
			u.add(addr)
		}
	}
}

// has reports whether any of the keys is out of reach.
func (u *unreachable) has(ctx context.Context, rdb redis.UniversalClient, names ...string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.addrs) == 0 {
		return false
	}
	for _, key := range names {
		if _, down := u.addrs[masterOf(ctx, rdb, key)]; down {
			return true
		}
	}
	return false
}

// masterOf is the address of a key's master, or "" if there is but one server
// or nobody knows.
func masterOf(ctx context.Context, rdb redis.UniversalClient, key string) string {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return ""
	}
	node, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return ""
	}
	return redisclient.Address(node)
}

// reachable gives up the videos that have a key out of reach, and returns the others.
func (s *sweep) reachable(ctx context.Context, batch []*reading) []*reading {
	var rest []*reading
	for _, r := range batch {
		if s.down.has(ctx, s.rdb, r.key, s.o.Keys.Count(r.video)) {
			s.fail(r, "read", errUnreachable)
		} else {
			rest = append(rest, r)
		}
	}
	return rest
}
