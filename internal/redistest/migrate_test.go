package redistest

import "testing"

func TestMigrate(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 0)
	ctx := t.Context()
	setAndGet(t, c.Client(), 100)
	slot := c.Slot(t, "k7")
	from := c.Owner(t, slot)
	to := c.Other(from)
	keysIn := func(s *Server) int64 {
		n, err := s.Client().ClusterCountKeysInSlot(ctx, slot).Result()
		if err != nil {
			t.Fatalf("keys in slot %d of %s: %v", slot, s.Addr(), err)
		}
		return n
	}
	before := keysIn(from)

	m := c.Migrate(t, slot, to)
	if n := m.MoveKeys(t); n == 0 || int64(n) != before || keysIn(from) != 0 || keysIn(to) != before {
		t.Errorf("moved %d keys, the slot has %d there and %d here; want %d moved", n, keysIn(from), keysIn(to), before)
	}
	if got, err := c.Client().Get(ctx, "k7").Result(); got != "7" || err != nil {
		t.Errorf("GET on the way = %q, %v, want 7", got, err)
	}
	m.Finish(t)
	if got := c.Owner(t, slot); got != to {
		t.Errorf("owner afterwards = %s, want %s", got.Addr(), to.Addr())
	}
	if got, err := c.Client().Get(ctx, "k7").Result(); got != "7" || err != nil {
		t.Errorf("GET afterwards = %q, %v, want 7", got, err)
	}
}

func TestSharedClusterIsOne(t *testing.T) {
	t.Parallel()
	c := SharedCluster(t)
	if len(c.Masters()) != sharedMasters || SharedCluster(t) != c {
		t.Errorf("SharedCluster has %d masters and is another at the second call, want %d and the same", len(c.Masters()), sharedMasters)
	}
	if err := c.Client().Set(t.Context(), Prefix(t), "v", 0).Err(); err != nil {
		t.Errorf("SET: %v", err)
	}
}
