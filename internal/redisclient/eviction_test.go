package redisclient_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func configure(t *testing.T, s *redistest.Server, maxmemory, policy string) {
	t.Helper()
	for name, value := range map[string]string{"maxmemory": maxmemory, "maxmemory-policy": policy} {
		if err := s.Client().ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEvictionPolicies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := connect(t, single(s))
	for _, policy := range []string{
		"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
	} {
		for maxmemory, evicts := range map[string]bool{"0": false, "100mb": policy != "noeviction"} {
			configure(t, s, maxmemory, policy)
			var want []string
			if evicts {
				want = []string{policy}
			}
			got, err := redisclient.EvictionPolicies(t.Context(), rdb)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("maxmemory %s, %s: EvictionPolicies = %v, %v, want %v", maxmemory, policy, got, err, want)
			}
		}
	}
}

func TestEvictionPoliciesOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--maxmemory", "100mb", "--cluster-require-full-coverage", "no")
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
	configure(t, c.Masters()[1], "100mb", "volatile-ttl")
	got, err := redisclient.EvictionPolicies(t.Context(), rdb)
	if diff := cmp.Diff([]string{"volatile-ttl"}, got); diff != "" || err != nil {
		t.Errorf("EvictionPolicies = %v, %v, want one master's", got, err)
	}
	c.Masters()[0].Kill(t)
	got, err = redisclient.EvictionPolicies(t.Context(), rdb)
	if diff := cmp.Diff([]string{"volatile-ttl"}, got); diff != "" || err == nil {
		t.Errorf("EvictionPolicies with a dead master = %v, %v, want the others' and an error", got, err)
	}
}
