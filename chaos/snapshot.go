package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

	uniques int64 // of a HyperLogLog
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
	for chunk := range slices.Chunk(names, 500) {
		if err := s.readKeys(ctx, rdb, chunk); err != nil {
			return s, err
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

// readKeys reads keys in two round trips: what they are, and what is in them.
func (s *snapshot) readKeys(ctx context.Context, rdb redis.UniversalClient, names []string) error {
	kinds, ttls := make([]*redis.StatusCmd, len(names)), make([]*redis.DurationCmd, len(names))
	pipe := rdb.Pipeline()
	for i, name := range names {
		kinds[i], ttls[i] = pipe.Type(ctx, name), pipe.TTL(ctx, name)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	read := make([]func(*value) error, len(names))
	pipe = rdb.Pipeline()
	for i, name := range names {
		read[i] = queueRead(ctx, pipe, kinds[i].Val(), name)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, name := range names {
		v := value{kind: kinds[i].Val(), ttl: ttls[i].Val()}
		switch err := read[i](&v); {
		case err != nil && !errors.Is(err, redis.Nil):
			return fmt.Errorf("read %s: %w", name, err)
		case err == nil && v.kind != "none" && v.ttl != gone:
			s.keys[name] = v
		}
	}
	return nil
}

// gone is go-redis's answer to TTL for a key that is not there.
const gone = -2

// queueRead queues the reading of a key's content, and returns what takes it in.
func queueRead(ctx context.Context, pipe redis.Pipeliner, kind, name string) func(*value) error {
	switch kind {
	case "string":
		if strings.Contains(name, "uniques:{") { // its text says nothing
			cmd := pipe.PFCount(ctx, name)
			return func(v *value) (err error) { v.uniques, err = cmd.Result(); return err }
		}
		cmd := pipe.Get(ctx, name)
		return func(v *value) (err error) { v.text, err = cmd.Result(); return err }
	case "hash":
		cmd := pipe.HGetAll(ctx, name)
		return func(v *value) (err error) {
			if v.fields, err = cmd.Result(); err == nil && len(v.fields) == 0 {
				err = redis.Nil // gone since its type was asked
			}
			return err
		}
	case "zset":
		cmd := pipe.ZRangeWithScores(ctx, name, 0, -1)
		return func(v *value) error {
			v.scores = make(map[string]float64)
			for _, z := range cmd.Val() {
				v.scores[fmt.Sprint(z.Member)] = z.Score
			}
			return cmd.Err()
		}
	}
	return func(*value) error { return nil }
}
