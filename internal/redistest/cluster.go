package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slotCount      = 16384
	clusterTimeout = 30 * time.Second // nodes get to know each other by gossip, which takes a second or three
)

// Cluster is a Redis Cluster of a test's own.
type Cluster struct {
	masters  []*Server
	replicas []*Server
	client   *redis.ClusterClient
}

// StartCluster runs masters servers that share the slots evenly, each with the given number of replicas, and returns
// when every node knows every other and serves all slots. args are options for every node: without
// "--cluster-require-full-coverage", "no" one lost master makes the others refuse keys as well.
func StartCluster(t testing.TB, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range masters * (1 + replicas) {
		c.add(start(t, clusterArgs(args)), i < masters)
	}
	var err error
	if c.client, err = c.newClient(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.client.Close() })
	if err := c.form(context.WithoutCancel(t.Context())); err != nil {
		t.Fatalf("redistest: cluster: %v", err)
	}
	return c
}

func (c *Cluster) add(s *Server, master bool) {
	if master {
		c.masters = append(c.masters, s)
	} else {
		c.replicas = append(c.replicas, s)
	}
}

func (c *Cluster) newClient() (*redis.ClusterClient, error) {
	o, err := c.masters[0].clientOptions()
	if err != nil {
		return nil, err
	}
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                    c.Addrs(),
		TLSConfig:                o.TLSConfig,
		ContextTimeoutEnabled:    true,
		DialerRetries:            1,
		DisableIdentity:          true,
		MaintNotificationsConfig: noMaintNotifications(),
		// By default, a client whose node refuses connections asks for the new master after a minute.
		ClusterStateReloadInterval: time.Second,
	}), nil
}

func clusterArgs(extra []string) argsFunc {
	return serverArgs(append([]string{
		"--cluster-enabled", "yes",
		"--cluster-node-timeout", "2000", // milliseconds; shorter, a busy machine looks like a dead node
		"--cluster-announce-ip", host,
		"--repl-diskless-sync-delay", "0",
	}, extra...))
}

// Addrs returns the address of every node, the masters' first.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, s := range c.nodes() {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Masters returns the servers that were masters at the start.
func (c *Cluster) Masters() []*Server { return c.masters }

// Other returns a master that is not s.
func (c *Cluster) Other(s *Server) *Server {
	if c.masters[0] == s {
		return c.masters[1]
	}
	return c.masters[0]
}

// Client returns a client for seeding and reading keys, shared by all callers and closed when the test ends.
func (c *Cluster) Client() *redis.ClusterClient { return c.client }

func (c *Cluster) nodes() []*Server {
	return append(append([]*Server{}, c.masters...), c.replicas...)
}

// form makes one cluster of the started servers.
func (c *Cluster) form(ctx context.Context) error {
	for _, step := range []func(context.Context) error{c.assignSlots, c.meet, c.replicate} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return c.await(ctx, c.serves)
}

// assignSlots gives each master its share of the slots, and an epoch of its own so that they need not settle on some.
func (c *Cluster) assignSlots(ctx context.Context) error {
	n := len(c.masters)
	for i, s := range c.masters {
		if err := s.client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		first, last := i*slotCount/n, (i+1)*slotCount/n-1
		if err := s.client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
	}
	return nil
}

// meet introduces every node to the first, and waits until the others have heard of each other from it.
func (c *Cluster) meet(ctx context.Context) error {
	nodes := c.nodes()
	for _, s := range nodes[1:] {
		if err := nodes[0].client.ClusterMeet(ctx, host, strconv.Itoa(s.port)).Err(); err != nil {
			return err
		}
	}
	return c.await(ctx, c.acquainted)
}

// replicate makes the other servers replicas of the masters in turn.
func (c *Cluster) replicate(ctx context.Context) error {
	for i, s := range c.replicas {
		id, err := c.masters[i%len(c.masters)].client.ClusterMyID(ctx).Result()
		if err != nil {
			return err
		}
		if err := s.client.ClusterReplicate(ctx, id).Err(); err != nil {
			return err
		}
	}
	return nil
}

// await polls until every node passes the check.
func (c *Cluster) await(ctx context.Context, check func(context.Context, *Server) error) error {
	for _, s := range c.nodes() {
		ready := func(ctx context.Context) error { return check(ctx, s) }
		if err := poll(ctx, clusterTimeout, s.proc.exited, ready); err != nil {
			return fmt.Errorf("node %s: %w", s.Addr(), err)
		}
	}
	return nil
}

// acquainted checks that the node has finished its handshakes with all others.
func (c *Cluster) acquainted(ctx context.Context, s *Server) error {
	table, err := s.client.ClusterNodes(ctx).Result()
	if err != nil {
		return err
	}
	if got, want := strings.Count(table, "\n"), len(c.nodes()); got != want || strings.Contains(table, "handshake") {
		return fmt.Errorf("knows %d of %d nodes:\n%s", got, want, table)
	}
	return nil
}

// serves checks that the node sees all slots served and all replicas in place, and has its own copy when it is one.
func (c *Cluster) serves(ctx context.Context, s *Server) error {
	info, err := s.client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	table, err := s.client.ClusterNodes(ctx).Result()
	if err != nil {
		return err
	}
	repl, err := s.client.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	switch {
	case !strings.Contains(info, "cluster_state:ok"), !strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r", slotCount)):
		return fmt.Errorf("does not serve all slots:\n%s", info)
	case strings.Count(table, "slave ") != len(c.replicas):
		return fmt.Errorf("does not see %d replicas:\n%s", len(c.replicas), table)
	case strings.Contains(repl, "master_link_status:down"):
		return fmt.Errorf("has no copy of its master:\n%s", repl)
	}
	return nil
}
