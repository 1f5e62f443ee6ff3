package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// snapshot is what Redis held at a moment.
type snapshot struct {
	now  time.Time // by Redis's clock
	keys map[string]value
}

// value is one key's.
type value struct {
	kind   string        // as TYPE says it
	ttl    time.Duration // noTTL: it never expires
	text   string        // of a string
	fields map[string]string
	scores map[string]float64 // of a sorted set
}

// noTTL is go-redis's answer to TTL for a key that never expires.
const noTTL = -1

// takeSnapshot reads all keys that match pattern.
func takeSnapshot(ctx context.Context, rdb redis.UniversalClient, pattern string) (snapshot, error) {
	s := snapshot{keys: make(map[string]value)}
	names, err := scanAll(ctx, rdb, pattern)
	if err != nil {
		return s, err
	}
	for _, name := range names {
		v, err := readKey(ctx, rdb, name)
		if err != nil {
			return s, fmt.Errorf("read %s: %w", name, err)
		}
		if v.kind != "none" { // gone since the scan
			s.keys[name] = v
		}
	}
	s.now, err = rdb.Time(ctx).Result()
	return s, err
}

// scanAll lists the keys of every master.
func scanAll(ctx context.Context, rdb redis.UniversalClient, pattern string) ([]string, error) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return scan(ctx, rdb, pattern)
	}
	var mu sync.Mutex
	var all []string
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		names, err := scan(ctx, master, pattern)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, names...)
		return err
	})
	return all, err
}

func scan(ctx context.Context, rdb redis.Cmdable, pattern string) (names []string, err error) {
	keys := rdb.Scan(ctx, 0, pattern, 1000).Iterator()
	for keys.Next(ctx) {
		names = append(names, keys.Val())
	}
	return names, keys.Err()
}

func readKey(ctx context.Context, rdb redis.UniversalClient, name string) (v value, err error) {
	if v.kind, err = rdb.Type(ctx, name).Result(); err != nil {
		return v, err
	}
	var scores []redis.Z
	switch v.kind {
	case "string":
		v.text, err = rdb.Get(ctx, name).Result()
	case "hash":
		v.fields, err = rdb.HGetAll(ctx, name).Result()
	case "zset":
		scores, err = rdb.ZRangeWithScores(ctx, name, 0, -1).Result()
		v.scores = make(map[string]float64, len(scores))
		for _, z := range scores {
			v.scores[fmt.Sprint(z.Member)] = z.Score
		}
	}
	if errors.Is(err, redis.Nil) {
		return value{kind: "none"}, nil
	}
	if err != nil {
		return v, err
	}
	v.ttl, err = rdb.TTL(ctx, name).Result()
	if v.ttl == -2 { // there is no such key any more
		v.kind = "none"
	}
	return v, err
}
