package redistest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:            s.MasterName,
		SentinelAddrs:         s.Addrs(),
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
	defer func() { _ = c.Close() }()
	if err := c.Set(t.Context(), "before", "v", 0).Err(); err != nil {
		t.Fatalf("SET before the failover: %v", err)
	}

	s.Master().Kill(t)
	set := func(ctx context.Context) error { return c.Set(ctx, "after", "v", 0).Err() }
	if err := poll(t.Context(), sentinelTimeout, nil, set); err != nil {
		t.Fatalf("SET after the failover: %v", err)
	}
	got, err := s.Replica().Client().Get(t.Context(), "after").Result()
	if got != "v" || err != nil {
		t.Errorf("GET on the promoted replica = %q, %v, want v", got, err)
	}
}
