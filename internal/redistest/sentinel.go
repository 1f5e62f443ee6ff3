package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	sentinelCount   = 3
	sentinelTimeout = 30 * time.Second // sentinels find each other by a message every two seconds
)

// Sentinel is a master with one replica, watched by three sentinels of which two must agree to a failover.
type Sentinel struct {
	MasterName string

	master, replica *Server
	sentinels       []*Server
	args            []string // of every server
}

// StartSentinel runs a set of a test's own and returns when every sentinel knows the others and the replica,
// so that a master killed from then on is replaced: half a second to notice, and some seconds to agree. args are options
// for every server, the sentinels too.
func StartSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	s := &Sentinel{MasterName: "main", args: args}
	data := append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	s.master = Start(t, data...)
	s.replica = Start(t, append(data, "--replicaof", host, strconv.Itoa(s.master.port))...)
	for range sentinelCount {
		s.sentinels = append(s.sentinels, start(t, s.sentinelArgs))
	}
	for _, node := range s.sentinels {
		ready := func(ctx context.Context) error { return s.ready(ctx, node) }
		if err := poll(context.WithoutCancel(t.Context()), sentinelTimeout, node.proc.exited, ready); err != nil {
			t.Fatalf("redistest: sentinel %s: %v", node.Addr(), err)
		}
	}
	return s
}

// Addrs returns the sentinels' addresses.
func (s *Sentinel) Addrs() []string {
	var addrs []string
	for _, node := range s.sentinels {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// Master returns the server that was the master at the start.
func (s *Sentinel) Master() *Server { return s.master }

// Replica returns the server that was the replica at the start.
func (s *Sentinel) Replica() *Server { return s.replica }

// Failover has the replica take over although the master lives, and returns when it has.
func (s *Sentinel) Failover(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	o, err := s.sentinels[0].clientOptions()
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewSentinelClient(o)
	defer func() { _ = c.Close() }()
	if err := c.Failover(ctx, s.MasterName).Err(); err != nil {
		t.Fatalf("redistest: SENTINEL FAILOVER: %v", err)
	}
	promoted := func(ctx context.Context) error {
		info, err := s.replica.client.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "role:master") {
			err = errors.New("the replica is none yet")
		}
		return err
	}
	if err := poll(ctx, sentinelTimeout, nil, promoted); err != nil {
		t.Fatalf("redistest: SENTINEL FAILOVER: %v", err)
	}
}

// sentinelArgs writes a sentinel's configuration: unlike a server, one must have a file that it can rewrite.
func (s *Sentinel) sentinelArgs(dir string, port int) ([]string, error) {
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf(`bind %[1]s
dir %[2]q
sentinel monitor %[3]s %[1]s %[4]d 2
sentinel down-after-milliseconds %[3]s 500
sentinel failover-timeout %[3]s 2000
`, host, dir, s.MasterName, s.master.port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	return slices.Concat([]string{conf, "--sentinel"}, portArgs(port, s.args), s.args), nil
}

// ready checks that a sentinel sees its master, the other sentinels, and a replica that has its copy.
func (s *Sentinel) ready(ctx context.Context, node *Server) error {
	o, err := node.clientOptions()
	if err != nil {
		return err
	}
	c := redis.NewSentinelClient(o)
	defer func() { _ = c.Close() }()
	master, err := c.Master(ctx, s.MasterName).Result()
	if err != nil {
		return err
	}
	others := fmt.Sprint(sentinelCount - 1)
	if master["flags"] != "master" || master["num-slaves"] != "1" || master["num-other-sentinels"] != others {
		return fmt.Errorf("does not see all: %v", master)
	}
	replicas, err := c.Replicas(ctx, s.MasterName).Result()
	if err != nil {
		return err
	}
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
		return fmt.Errorf("does not see one replica with a copy: %v", replicas)
	}
	return nil
}
