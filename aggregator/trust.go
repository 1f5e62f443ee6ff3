package aggregator

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// trust is how long a count may be left unwritten that is right and of which the
// worker does not know when it was written: a new worker would have to write
// all of them otherwise. A complete pass writes down until when every
// count lives at least. As the counts that are left keep the lives they have, a
// pass that trusted an earlier one promises no more than that did, until all of
// them have been written again.
type trust struct {
	until   int64        // Unix seconds: every count lives until then
	renewed int64        // Unix seconds: by then, those that are left now are written again
	used    *atomic.Bool // something was left
}

// trusted reads what an earlier pass, by whatever worker, has promised.
func (a *Aggregator) trusted(ctx context.Context, now time.Time) trust {
	t := trust{used: new(atomic.Bool)}
	until, err := a.rdb.HGet(ctx, a.o.Keys.LastPass(), "counts_until").Int64()
	left := until - now.Unix()
	if err == nil && left <= int64(a.o.CountTTL/time.Second) { // or the clock stepped back, or it is somebody else's writing
		t.until, t.renewed = until, now.Unix()+left/2 // the other half is a reserve for passes that fail
	}
	return t
}

// renewAt is when a count that lives until then must be written again: spread
// over the time there is, Unix seconds; in the past if there is none.
func (t trust) renewAt(now int64) int64 {
	if t.renewed <= now {
		return now
	}
	t.used.Store(true)
	return now + 1 + rand.N(t.renewed-now)
}

// countsUntil is until when every count lives after this pass, if it was
// complete, Unix seconds: those that it has written or knows are written
// again before half their TTL is over.
func (p *pass) countsUntil() int64 {
	if p.trust.used.Load() {
		p.lent.Store(&p.trust)
	}
	until := p.now.Add(p.o.CountTTL / 2).Unix()
	if lent := p.lent.Load(); lent != nil && lent.renewed > p.now.Unix() {
		return min(until, lent.until)
	}
	return until
}
