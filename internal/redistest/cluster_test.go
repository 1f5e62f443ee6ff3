package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestClusterServesAllMasters(t *testing.T) {
	t.Parallel()
	const masters, keys = 3, 600
	c := StartCluster(t, masters, 0)
	setAndGet(t, c.Client(), keys)

	var total int64
	for _, s := range c.Masters() {
		n, err := s.Client().DBSize(t.Context()).Result()
		if err != nil {
			t.Fatalf("DBSIZE on %s: %v", s.Addr(), err)
		}
		if n == 0 {
			t.Errorf("master %s holds no key", s.Addr())
		}
		total += n
	}
	if total != keys || len(c.Addrs()) != masters {
		t.Errorf("%d nodes hold %d keys, want %d and %d", len(c.Addrs()), total, masters, keys)
	}
}

func setAndGet(t *testing.T, c *redis.ClusterClient, keys int) {
	t.Helper()
	for i := range keys {
		key, want := fmt.Sprintf("k%d", i), fmt.Sprint(i)
		if err := c.Set(t.Context(), key, want, 0).Err(); err != nil {
			t.Fatalf("SET %s: %v", key, err)
		}
		if got, err := c.Get(t.Context(), key).Result(); got != want || err != nil {
			t.Fatalf("GET %s = %q, %v, want %q", key, got, err, want)
		}
	}
}

func TestClusterReplicaTakesOver(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1)
	if got, want := len(c.Addrs()), 6; got != want {
		t.Fatalf("len(Addrs()) = %d, want %d", got, want)
	}
	c.Masters()[0].Kill(t)
	for i := range 50 {
		key := fmt.Sprintf("k%d", i)
		set := func(ctx context.Context) error { return c.Client().Set(ctx, key, "v", 0).Err() }
		if err := poll(t.Context(), clusterTimeout, nil, set); err != nil {
			t.Errorf("SET %s after a master was killed: %v", key, err)
		}
	}
}

func TestClusterWithoutFullCoverage(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no") // of two, the one left is no majority
	c.Masters()[2].Kill(t)
	survivor := c.Masters()[0].Client()
	noticed := func(ctx context.Context) error {
		info, err := survivor.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_slots_ok:10922\r") {
			err = fmt.Errorf("the killed master is not missed:\n%s", info)
		}
		return err
	}
	if err := poll(t.Context(), clusterTimeout, nil, noticed); err != nil {
		t.Fatal(err)
	}
	// "b" lies in slot 3300, among the first master's.
	if err := survivor.Set(t.Context(), "b", "v", 0).Err(); err != nil {
		t.Errorf("SET on the master that is left: %v", err)
	}
}
