package redistest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Migration is the move of one slot from its master to another, as redis-cli --cluster reshard makes it, a step at a time.
type Migration struct {
	cluster  *Cluster
	slot     int
	from, to *Server
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	slot, err := c.masters[0].client.ClusterKeySlot(context.WithoutCancel(t.Context()), key).Result()
	if err != nil {
		t.Fatalf("redistest: slot of %q: %v", key, err)
	}
	return int(slot)
}

// Owner returns the server that is a slot's master now.
func (c *Cluster) Owner(t testing.TB, slot int) *Server {
	t.Helper()
	//nolint:staticcheck // CLUSTER SHARDS needs Redis 7
	ranges, err := c.client.ClusterSlots(context.WithoutCancel(t.Context())).Result()
	if err != nil {
		t.Fatalf("redistest: owner of slot %d: %v", slot, err)
	}
	for _, r := range ranges {
		for _, s := range c.nodes() {
			if r.Start <= slot && slot <= r.End && r.Nodes[0].Addr == s.Addr() {
				return s
			}
		}
	}
	t.Fatalf("redistest: slot %d has no owner", slot)
	return nil
}

// Migrate begins to move a slot: from now on its old master answers ASK for keys that it does not have.
func (c *Cluster) Migrate(t testing.TB, slot int, to *Server) *Migration {
	t.Helper()
	m := &Migration{cluster: c, slot: slot, from: c.Owner(t, slot), to: to}
	m.do(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.id(t, m.from))
	m.do(t, m.from, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.id(t, to))
	return m
}

// MoveKeys moves these keys, or every key that is in the slot now, and returns how many.
func (m *Migration) MoveKeys(t testing.TB, names ...string) int {
	t.Helper()
	if len(names) == 0 {
		const most = 10_000 // in one slot of a test
		var err error
		names, err = m.from.client.ClusterGetKeysInSlot(context.WithoutCancel(t.Context()), m.slot, most).Result()
		if err != nil {
			t.Fatalf("redistest: keys in slot %d: %v", m.slot, err)
		}
	}
	for _, key := range names {
		m.do(t, m.from, "MIGRATE", host, m.to.port, key, 0, 10_000)
	}
	return len(names)
}

// Finish makes the new master the slot's owner, in every master's eyes.
func (m *Migration) Finish(t testing.TB) {
	t.Helper()
	id := m.id(t, m.to)
	m.do(t, m.to, "CLUSTER", "SETSLOT", m.slot, "NODE", id) // first, or the slot would be nobody's for a moment
	m.do(t, m.from, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
	for _, s := range m.cluster.masters {
		if s != m.to && s != m.from {
			m.do(t, s, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
		}
	}
}

func (m *Migration) id(t testing.TB, s *Server) string {
	t.Helper()
	id, err := s.client.ClusterMyID(context.WithoutCancel(t.Context())).Result()
	if err != nil {
		t.Fatalf("redistest: id of %s: %v", s.Addr(), err)
	}
	return id
}

func (m *Migration) do(t testing.TB, s *Server, args ...any) {
	t.Helper()
	cmd := redis.NewCmd(context.WithoutCancel(t.Context()), args...)
	if err := s.client.Process(context.WithoutCancel(t.Context()), cmd); err != nil {
		t.Fatalf("redistest: %v on %s: %v", args, s.Addr(), err)
	}
}
