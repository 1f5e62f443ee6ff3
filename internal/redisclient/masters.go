package redisclient

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// slotCount is how many slots the keys of a cluster are spread over.
const slotCount = 16384

// ErrNotCovered is returned by Masters where the masters that are known do not
// own every slot.
var ErrNotCovered = errors.New("redisclient: the masters in sight do not own all slots")

// Masters returns a client for every server that owns keys: rdb itself, or one
// for each master of a cluster, be it reachable or not. Where these may not be
// all, as when a slot is unassigned or the node that was asked belongs to no
// cluster, it returns an error with those that are known: to go by them alone
// would take keys out of sight for keys that are gone.
func Masters(ctx context.Context, rdb redis.UniversalClient) ([]redis.UniversalClient, error) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return []redis.UniversalClient{rdb}, nil
	}
	var mu sync.Mutex
	var masters []redis.UniversalClient
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters = append(masters, node)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("redisclient: ask the cluster for its masters: %w", err)
	}
	return masters, checkCoverage(ctx, cluster, len(masters))
}

// Address is where a node listens, "host:port". Behind Sentinel it is one text
// for whichever server is the master, and of a cluster as a whole "".
func Address(node redis.UniversalClient) string {
	if client, ok := node.(*redis.Client); ok {
		return client.Options().Addr
	}
	return ""
}

// checkCoverage asks once more, since the library does not tell what it went by.
func checkCoverage(ctx context.Context, cluster *redis.ClusterClient, known int) error {
	if known == 0 {
		return fmt.Errorf("%w: none is known", ErrNotCovered)
	}
	ranges, err := cluster.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS needs Redis 7
	if err != nil {
		return fmt.Errorf("redisclient: ask the cluster for its slots: %w", err)
	}
	slots := 0
	owners := make(map[string]struct{}) // by id: a node's address depends on who is asked
	for _, r := range ranges {
		if len(r.Nodes) > 0 {
			slots += r.End - r.Start + 1
			owners[r.Nodes[0].ID] = struct{}{}
		}
	}
	if slots != slotCount || len(owners) != known {
		return fmt.Errorf("%w: %d of %d slots have an owner; %d masters, of which %d are known",
			ErrNotCovered, slots, slotCount, len(owners), known)
	}
	return nil
}
