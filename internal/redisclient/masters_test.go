package redisclient_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func TestMastersOfSingle(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t) // it is known all the same
	rdb := connect(t, single(s))
	masters, err := redisclient.Masters(t.Context(), rdb)
	if err != nil || len(masters) != 1 || masters[0] != rdb {
		t.Errorf("Masters = %v, %v, want the client itself", masters, err)
	}
}

func TestMastersOfClusterAreAllButTheReplicas(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
	wantMasters(t, rdb, c.Masters()...)
}

// A dead master is one nevertheless: whoever visits all must come upon it.
func TestMastersIncludeDeadOnes(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
	c.Masters()[1].Kill(t)
	wantMasters(t, rdb, c.Masters()...)
}

func wantMasters(t *testing.T, rdb redis.UniversalClient, want ...*redistest.Server) {
	t.Helper()
	masters, err := redisclient.Masters(t.Context(), rdb)
	if err != nil {
		t.Errorf("Masters: %v", err)
	}
	var got, addrs []string
	for _, m := range masters {
		got = append(got, m.(*redis.Client).Options().Addr)
	}
	for _, s := range want {
		addrs = append(addrs, s.Addr())
	}
	slices.Sort(got)
	slices.Sort(addrs)
	if diff := cmp.Diff(addrs, got); diff != "" {
		t.Errorf("masters (-want +got):\n%s", diff)
	}
}

func TestMastersTellWhenASlotIsNobodys(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
	for _, s := range c.Masters() {
		if err := s.Client().ClusterDelSlots(t.Context(), 7).Err(); err != nil {
			t.Fatalf("CLUSTER DELSLOTS: %v", err)
		}
	}
	masters, err := redisclient.Masters(t.Context(), rdb)
	if !errors.Is(err, redisclient.ErrNotCovered) || len(masters) != 3 {
		t.Errorf("Masters = %d of them, %v, want 3 and %v", len(masters), err, redisclient.ErrNotCovered)
	}
}

// A node that has been reset, or has not joined yet, knows of no slots: that is
// not a cluster without keys.
func TestMastersOfANodeWithoutCluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--cluster-enabled", "yes")
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: []string{s.Addr()}})
	masters, err := redisclient.Masters(t.Context(), rdb)
	if !errors.Is(err, redisclient.ErrNotCovered) || len(masters) != 0 {
		t.Errorf("Masters = %v, %v, want none and %v", masters, err, redisclient.ErrNotCovered)
	}
}

func TestMastersOfDeadCluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: []string{s.Addr()}})
	if masters, err := redisclient.Masters(t.Context(), rdb); err == nil || len(masters) != 0 {
		t.Errorf("Masters of a cluster that is gone = %v, %v, want an error", masters, err)
	}
}
