package chaos

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"headcount/internal/programtest"
)

// A lease of 1.2 s leaves a busy machine time to refresh it.
const (
	leaseTTL = 1200 * time.Millisecond
	retry    = leaseTTL / 3 // between two tries of a standby
)

// What programs say.
const (
	leads      = "leading: this worker holds the lease and makes the passes"
	standsBy   = "standing by: another worker holds the lease"
	releases   = "the lease is released"
	losesLease = "the lease was lost"
	drains     = "draining: not ready any more"
)

// crew is workers of which one leads.
type crew struct {
	*site
	s       *scenario
	env     []string
	workers []*crewWorker
}

// crewWorker is a worker with a proxy of its own before Redis.
type crewWorker struct {
	*programtest.Program
	proxy *proxy
	sent  *writes
}

// writes counts what a worker's passes write.
type writes struct {
	evict     []byte // the script's name, as it is sent
	evictions atomic.Int64
	others    atomic.Int64 // counts, TTLs and the last pass
}

func (w *writes) tap(data []byte) {
	w.evictions.Add(int64(bytes.Count(data, w.evict)))
	for _, command := range []string{"set", "hset", "expire"} {
		w.others.Add(int64(bytes.Count(data, []byte(onWire(command)))))
	}
}

// newCrew starts n workers for a site at a Redis.
func (s *scenario) newCrew(site *site, n int, env ...string) *crew {
	s.Helper()
	c := &crew{site: site, s: s, env: append([]string{"HEADCOUNT_LEASE_TTL=" + leaseTTL.String(), "HEADCOUNT_REDIS_TIMEOUT=400ms"}, env...)}
	for range n {
		c.hire()
	}
	return c
}

// hire starts one more.
func (c *crew) hire() *crewWorker {
	c.s.Helper()
	w := &crewWorker{sent: &writes{evict: []byte(onWire(scriptName(c.s, "aggregator/evict.lua")))}}
	w.proxy = c.s.newProxy(c.addr, w.sent.tap)
	w.Program = c.startWorker(c.s, append(c.env, "HEADCOUNT_REDIS_ADDRS="+w.proxy.addr())...)
	w.URL(c.s, "admin")
	c.workers = append(c.workers, w)
	return w
}

// leader waits until one of the workers, and no other, says by its metric that it holds the lease. before is what the key
// says of it.
func (c *crew) leader(t testing.TB) (leader *crewWorker, before string) {
	t.Helper()
	eventually(t, "a worker leads", func() bool {
		before = c.holder(t)
		leaders := 0
		for _, w := range c.workers {
			if programtest.Metric(t, w.URL(t, "admin"), "headcount_lease_held") == 1 {
				leader = w
				leaders++
			}
		}
		return leaders == 1 && before != "" && before == c.holder(t)
	})
	return leader, before
}

// dismiss takes a worker from the crew that has ended.
func (c *crew) dismiss(gone *crewWorker) {
	c.workers = slices.DeleteFunc(slices.Clone(c.workers), func(w *crewWorker) bool { return w == gone })
}

// holder is who holds the lease: what the key says after its token; "" for nobody.
func (c *crew) holder(t testing.TB) string {
	t.Helper()
	var token, holder string
	_, _ = fmt.Sscan(c.redis.Get(t.Context(), c.keys.Lease()).Val(), &token, &holder) // nothing to scan: nobody
	return holder
}

// awaitSuccessor waits until somebody else holds the lease, and returns how long that took.
func (c *crew) awaitSuccessor(t testing.TB, before string, since time.Time) time.Duration {
	t.Helper()
	eventually(t, "another worker leads", func() bool {
		now := c.holder(t)
		return now != "" && now != before
	})
	return time.Since(since)
}

// wantTakenOver waits for what an operator sees when another worker leads: it says so, makes passes, and tells who it is,
// and the others stand by.
func (c *crew) wantTakenOver(t testing.TB) {
	t.Helper()
	operator := newClient(c.ledger)
	defer operator.close()
	eventually(t, "one worker says that it leads, and the others that they stand by", func() bool {
		leading := 0
		for _, w := range c.workers {
			admin, state, says := w.URL(t, "admin"), "standby", standsBy
			if programtest.Metric(t, admin, "headcount_lease_held") == 1 {
				state, says = "held", leads
				leading++
				if programtest.Metric(t, admin, `headcount_passes_total{outcome="complete"}`) == 0 {
					return false
				}
			}
			ready := operator.askReadiness(t.Context(), admin)
			if ready.code != http.StatusOK || ready.Components["lease"] != state || !logged(w.Program, says) {
				return false
			}
		}
		return leading == 1 && c.lastPass(t.Context())["holder"] == c.holder(t)
	})
}
