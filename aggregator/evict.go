package aggregator

import (
	"context"
	_ "embed"
	"slices"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

//go:embed evict.lua
var evictSource string

var evictScript = redis.NewScript(evictSource)

// maxEvict is how many viewers one call of evict.lua looks at.
const maxEvict = 512

// evictions are calls of evict.lua, each with the hash that it is for and how
// many of its candidates have no plausible time.
type evictions struct {
	calls   []*redisclient.ScriptCall
	of      []*reading
	invalid []int64
}

// deferred reports whether the candidates of the page read last are evicted
// beside the reading of the next, which saves a round trip. On a cluster they
// are not: pages come from one master, and the script goes where the hash is.
func (s *sweep) deferred(r *reading) bool { return r.large && !r.whole && r.from == s.rdb }

// evict removes the candidates of the whole batch in one round trip, but for
// those who are deferred.
func (s *sweep) evict(ctx context.Context, batch []*reading) {
	e := s.evictions(batch, func(r *reading) bool { return !s.deferred(r) })
	redisclient.RunScripts(ctx, s.rdb, e.calls)
	s.settleEvictions(e)
}

// evictions are the calls for the hashes of a batch that are wanted, which are to
// be sent at once.
func (s *sweep) evictions(batch []*reading, wanted func(*reading) bool) (e evictions) {
	for _, r := range batch {
		if r.dropped || !wanted(r) {
			continue
		}
		for i := 0; i < len(r.stale.viewers); i += maxEvict {
			end := min(i+maxEvict, len(r.stale.viewers))
			args := slices.Concat(r.stale.viewers[i:end], r.stale.values[i:end])
			e.calls = append(e.calls, &redisclient.ScriptCall{Script: evictScript, Key: r.key, Args: args})
			e.of = append(e.of, r)
			invalid := min(r.invalid, int64(end-i))
			e.invalid = append(e.invalid, invalid)
			r.invalid -= invalid
		}
	}
	if len(e.calls) > 0 {
		s.beforeWrites()
	}
	return e
}

// settleEvictions takes in the answers.
func (s *sweep) settleEvictions(e evictions) {
	for i, c := range e.calls {
		r := e.of[i]
		evicted, err := evictedBy(c.Reply, r)
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			s.notHash(r) // any more
			continue
		}
		if err != nil {
			s.fail(r, "evict", err)
			continue
		}
		s.sum.Evicted += evicted
		s.sum.Invalid += min(e.invalid[i], evicted) // whoever came back meanwhile had been invalid, or not: nobody can tell
	}
}

// evictedBy reads evict.lua's answer and brings r.viewers up to date.
func evictedBy(reply *redis.Cmd, r *reading) (evicted int64, err error) {
	if _, some := reply.Val().([]any); !some {
		evicted, err = reply.Int64()
		r.viewers -= evicted
		return evicted, err
	}
	// The others had come back, left, or been evicted by another pass.
	evictedAndLeft, err := reply.Int64Slice()
	if err != nil {
		return 0, err
	}
	r.viewers = evictedAndLeft[1]
	return evictedAndLeft[0], nil
}
