package redisclient

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// EvictionPolicies returns the maxmemory-policy of each server that owns keys and that would make room by dropping
// some: one with a maxmemory, and another policy than noeviction. Every key of ours has a TTL, so the volatile policies
// drop hashes too. An error comes with what the others said.
//
// INFO tells it also where CONFIG is not allowed, as it never is for our users and on most managed services.
func EvictionPolicies(ctx context.Context, rdb redis.UniversalClient) (policies []string, err error) {
	masters, err := Masters(ctx, rdb)
	for _, m := range masters {
		info, failed := m.Info(ctx, "memory").Result()
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("redisclient: INFO memory: %w", failed))
			continue
		}
		limit, policy := InfoField(info, "maxmemory"), InfoField(info, "maxmemory_policy")
		if limit != "" && limit != "0" && policy != "" && policy != "noeviction" {
			policies = append(policies, policy)
		}
	}
	return policies, err
}

// InfoField returns what a line "name:value" of INFO says, "" if there is none.
func InfoField(info, name string) string {
	_, rest, _ := strings.Cut("\n"+info, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
