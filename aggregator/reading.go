package aggregator

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/counts"
	"headcount/internal/redisclient"
)

//go:embed evict.lua
var evictSource string

var evictScript = redis.NewScript(evictSource)

// reading is one hash on its way to a count.
//
// The count is the hash's length once all that was stale in what we read is
// evicted, never a tally over pages: HSCAN may return a viewer twice. Only a
// hash that fits in one page needs no length, as a page can be tallied exactly.
type reading struct {
	video, key string
	cursor     uint64 // of the next page; 0 after the last
	pages      int    // read so far
	stale      []any  // viewers in this page to evict
	viewers    int64  // the count, right after the last page
	lastSeen   int64  // Unix seconds: the newest time in the hash
	ttl        time.Duration
	dropped    bool // failed or skipped: not published by this pass

	page *redis.ScanCmd
	left *redis.DurationCmd // TTL, with the first page
	size *redis.IntCmd      // HLEN, with every further page
}

// readPages reads the next page of every hash in one round trip.
func (s *sweep) readPages(ctx context.Context, batch []*reading) {
	if len(batch) == 0 {
		return
	}
	pipe := s.a.rdb.Pipeline()
	for _, r := range batch {
		r.page = pipe.HScan(ctx, r.key, r.cursor, "", pageSize)
		if r.pages == 0 {
			r.left = pipe.TTL(ctx, r.key)
		} else {
			r.size = pipe.HLen(ctx, r.key)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error

	for _, r := range batch {
		err := r.page.Err()
		if err == nil && r.pages == 0 {
			err = r.left.Err()
		} else if err == nil {
			err = r.size.Err()
		}
		switch {
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			r.dropped = true
			s.skip(r.key)
		case err != nil:
			s.fail(r, "read", err)
		default:
			s.take(r)
		}
	}
}

// take looks through the page that r has just read.
func (s *sweep) take(r *reading) {
	page, cursor := r.page.Val()
	r.cursor = cursor
	r.pages++
	r.stale = r.stale[:0]
	for i := 0; i+1 < len(page); i += 2 {
		at, ok := lastSeen(page[i+1], s.newest)
		if !ok || at < s.oldest {
			r.stale = append(r.stale, page[i])
		} else if at > r.lastSeen {
			r.lastSeen = at
		}
	}
	if r.pages == 1 {
		r.ttl = r.left.Val()
		r.viewers = distinct(page)
	} else {
		r.viewers = r.size.Val()
	}
	r.page, r.left, r.size = nil, nil, nil // a large hash is open for long; its pages are not
}

// distinct is the number of viewers in a page of viewer, value, viewer, value, …
func distinct(page []string) int64 {
	viewers := make(map[string]struct{}, len(page)/2)
	for i := 0; i < len(page); i += 2 {
		viewers[page[i]] = struct{}{}
	}
	return int64(len(viewers))
}

// maxEvict is how many viewers one call of evict.lua looks at.
const maxEvict = 512

// evict removes the stale viewers of all pages in one round trip. Afterwards
// each of these hashes' count is its length, as the script returned it.
func (s *sweep) evict(ctx context.Context, batch []*reading) {
	var calls []*redisclient.ScriptCall
	var of []*reading // whose call each is
	for _, r := range batch {
		if r.dropped {
			continue
		}
		for stale := range slices.Chunk(r.stale, maxEvict) {
			args := append([]any{int64(s.window / time.Second), int64(ahead / time.Second)}, stale...)
			calls = append(calls, &redisclient.ScriptCall{Script: evictScript, Key: r.key, Args: args})
			of = append(of, r)
		}
	}
	redisclient.RunScripts(ctx, s.a.rdb, calls)

	for i, c := range calls {
		reply, err := c.Reply.Int64Slice()
		if err != nil {
			s.fail(of[i], "evict", err)
			continue
		}
		s.sum.Evicted += reply[0]
		s.sum.Invalid += reply[1]
		of[i].viewers = reply[2]
	}
}

// publish writes the counts of hashes that were read to their end, and gives a
// TTL to those that have none or would lose a viewer by the one they have:
// another program may write without EXPIRE.
func (s *sweep) publish(ctx context.Context, finished []*reading) {
	if len(finished) == 0 {
		return
	}
	pipe := s.a.rdb.Pipeline()
	set := make([]*redis.StatusCmd, len(finished))
	heal := make([]*redis.BoolCmd, len(finished))
	for i, r := range finished {
		set[i] = s.a.counts.Set(ctx, pipe, r.video, r.viewers)
		if r.viewers > 0 && r.ttl < s.needs(r) {
			heal[i] = pipe.Expire(ctx, r.key, s.a.o.KeyTTL)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error

	for i, r := range finished {
		if heal[i] != nil {
			if err := heal[i].Err(); err != nil {
				s.fail(r, "set a TTL", err)
			} else if heal[i].Val() {
				s.sum.Healed++
			}
		}
		err := counts.Err(set[i])
		switch {
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			s.skip(s.a.o.Keys.Count(r.video))
		case err != nil:
			s.fail(r, "publish", err)
		case r.viewers > 0:
			s.sum.Videos++
			s.sum.Viewers += r.viewers
		}
	}
}

// needs is the TTL below which the hash could be gone while its last viewer is
// still online, or before the next pass has seen whoever another program adds to
// it without EXPIRE. Our own plays never leave it that short.
func (s *sweep) needs(r *reading) time.Duration {
	margin := (s.a.o.KeyTTL - s.window) / 2
	return time.Unix(r.lastSeen, 0).Add(s.window + margin).Sub(s.now)
}
