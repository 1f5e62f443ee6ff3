package redisclient_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func TestForEachMasterOfSingle(t *testing.T) {
	t.Parallel()
	rdb := connect(t, single(redistest.Shared(t)))
	broken := errors.New("broken")
	calls := 0
	err := redisclient.ForEachMaster(t.Context(), rdb, func(_ context.Context, node redis.UniversalClient) error {
		calls++
		if node != rdb {
			t.Errorf("called with %v, want the client itself", node)
		}
		return broken
	})
	if calls != 1 || !errors.Is(err, broken) {
		t.Errorf("calls = %d, error = %v, want 1 and %v", calls, err, broken)
	}
}

func TestForEachMasterOfCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
	var masters []string
	for _, s := range c.Masters() {
		masters = append(masters, s.Addr())
	}
	slices.Sort(masters)

	var seen addrs
	if err := redisclient.ForEachMaster(t.Context(), rdb, seen.ping); err != nil {
		t.Errorf("ForEachMaster: %v", err)
	}
	if diff := cmp.Diff(masters, seen.sorted()); diff != "" {
		t.Errorf("masters called (-want +got):\n%s", diff)
	}

	broken := map[string]error{masters[0]: errors.New("zero"), masters[1]: nil, masters[2]: errors.New("two")}
	err := redisclient.ForEachMaster(t.Context(), rdb, func(_ context.Context, node redis.UniversalClient) error {
		return broken[addr(node)]
	})
	for master, want := range broken {
		if want != nil && (!errors.Is(err, want) || !strings.Contains(err.Error(), "master "+master)) {
			t.Errorf("ForEachMaster: %v, want it to hold %v of %s", err, want, master)
		}
	}
}

func TestForEachMasterReportsDeadOnes(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
	setAndGet(t, rdb, "k")
	dead := c.Masters()[1]
	dead.Kill(t)

	var seen addrs
	err := redisclient.ForEachMaster(t.Context(), rdb, seen.ping)
	if err == nil || !strings.Contains(err.Error(), "master "+dead.Addr()) {
		t.Errorf("ForEachMaster with %s dead: %v, want its error", dead.Addr(), err)
	}
	if got := seen.sorted(); len(got) != 2 || slices.Contains(got, dead.Addr()) {
		t.Errorf("masters that answered = %q, want the other two", got)
	}
}

func TestForEachMasterOfDeadCluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: []string{s.Addr()}})
	err := redisclient.ForEachMaster(t.Context(), rdb, func(context.Context, redis.UniversalClient) error { return nil })
	if err == nil {
		t.Errorf("ForEachMaster of a cluster that is gone: no error, so nothing would look like a complete visit")
	}
}

// addrs gathers the nodes that answer.
type addrs struct {
	mu   sync.Mutex
	seen []string
}

func (a *addrs) ping(ctx context.Context, node redis.UniversalClient) error {
	if err := node.Ping(ctx).Err(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, addr(node))
	return nil
}

func (a *addrs) sorted() []string {
	slices.Sort(a.seen)
	return a.seen
}

func addr(node redis.UniversalClient) string {
	return node.(*redis.Client).Options().Addr
}
