package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

// reading is one video on its way to a count.
//
// A hash of fewer than smallSize viewers is read whole, by HRANDFIELD: it is
// cheaper than a page of HSCAN, as bounded, and returns nobody twice. A larger
// one is read by HSCAN, which may return a viewer twice, so its count is the
// length that it had with its last page, less whom that page made us evict, and
// never a tally over pages. Where the memory says that a hash was large, the
// first reading, in vain then, is saved.
type reading struct {
	video, key string
	sight
	isCount bool // it came by with its count key, so there is one
	checked bool // only for whether there is a hash; it is counted elsewhere

	told     bool                  // the hash's TTL and the count key's value are known
	from     redis.UniversalClient // who sends for the pages of a large hash
	moved    bool                  // a large hash went to another master between two pages, and is read there
	cursor   uint64                // of the next page of a large hash
	whole    bool                  // it has been read to its end
	viewers  int64                 // in the hash: the count once it is read
	gone     bool                  // there is no hash
	foreign  bool                  // … but a key of another type
	oldest   int64                 // Unix seconds: the earliest time of a viewer who stays; 0: none
	stale    candidates            // to evict, of what was just read or of the suspects
	invalid  int64                 // of these, with no plausible time
	list     []suspect             // found so far
	unlisted bool                  // too many, so the list is incomplete
	listSize int                   // bytes
	dropped  bool                  // given up for this pass

	ttl       time.Duration // of the hash, where asked
	published string        // the count key's value; "" if there is none
	countTTL  time.Duration // of the count key, where asked

	small *redis.KeyValueSliceCmd
	page  *redis.ScanCmd
	size  *redis.IntCmd
	asked asked
}

// candidates are viewers to evict, and their values as read.
type candidates struct{ viewers, values []any }

func (c *candidates) add(viewer, value string) {
	c.viewers, c.values = append(c.viewers, viewer), append(c.values, value)
}

// noTTL is go-redis's answer to TTL for a key that never expires.
const noTTL = -1

// round reads a page of each open hash, evicts who is stale, publishes the
// hashes that are read to their end, and returns those that are not.
func (s *sweep) round(ctx context.Context, open []*reading) (unfinished []*reading) {
	var fresh, large []*reading
	for _, r := range open {
		if r.large && r.from == nil { // so the memory says
			s.settleOn(ctx, r)
		}
		if r.dropped {
			continue
		}
		if r.large {
			large = append(large, r)
		} else {
			fresh = append(fresh, r)
		}
	}
	for len(fresh)+len(large) > 0 {
		f, l := min(len(fresh), maxOpen), min(len(large), maxPages)
		batch := s.reachable(ctx, slices.Concat(fresh[:f], large[:l]))
		fresh, large = fresh[f:], large[l:]

		s.read(ctx, batch)
		s.evict(ctx, batch)
		var finished []*reading
		for _, r := range batch {
			switch {
			case r.dropped:
			case r.whole:
				finished = append(finished, r)
				if !r.gone {
					s.sum.Read++
				}
			default:
				unfinished = append(unfinished, r)
			}
		}
		unfinished = append(unfinished, s.publish(ctx, finished)...)
	}
	return unfinished
}

// read reads all of a small hash or the next page of a large one, for every
// hash of the batch in one round trip.
func (s *sweep) read(ctx context.Context, batch []*reading) {
	pipes := make(pipelines)
	pipe := pipes.of(s.rdb)
	var untold []*reading
	for _, r := range batch {
		if r.large {
			s.readPage(ctx, pipes.of(r.from), r)
		} else {
			r.small = pipe.HRandFieldWithValues(ctx, r.key, smallSize)
		}
		if !r.told {
			r.asked.ttl = pipe.TTL(ctx, r.key)
			untold = append(untold, r)
		}
	}
	s.askCounts(ctx, pipe, untold)
	var now *redis.TimeCmd
	if !s.down.is(redisclient.Address(s.node)) {
		now = pipes.of(s.node).Time(ctx)
	}
	evictions := s.evictions(batch, s.deferred)
	redisclient.QueueScripts(ctx, pipe, evictions.calls)
	s.exec(ctx, pipes)
	redisclient.RepeatScripts(ctx, s.rdb, evictions.calls)
	s.passTime(now)

	for _, r := range untold {
		if err := s.takeCount(r); err != nil {
			s.fail(r, "read", err)
		}
		r.told = true
	}
	for _, r := range batch {
		r.stale, r.invalid = candidates{}, 0
		switch {
		case r.dropped:
		case r.large:
			s.takePage(ctx, r)
		default:
			s.takeSmall(ctx, r)
		}
		r.small, r.page, r.size = nil, nil, nil // a large hash is open for long; its pages are not
	}
	s.settleEvictions(evictions)
}

// readPage asks for the next page of a large hash, and for its length. A master
// to which it has only just moved may still have to be told that this is known.
func (s *sweep) readPage(ctx context.Context, pipe redis.Pipeliner, r *reading) {
	asking := func() {
		if r.moved {
			pipe.Do(ctx, "asking")
		}
	}
	asking()
	r.page = pipe.HScan(ctx, r.key, r.cursor, "", pageSize)
	asking()
	r.size = pipe.HLen(ctx, r.key)
}

// passTime moves on from when a time is implausible: what was read now may have
// been written just before, and the pass may have begun long ago.
func (s *sweep) passTime(asked *redis.TimeCmd) {
	now := s.clock.at(time.Now())
	if asked != nil {
		var answer redis.Error
		if told, err := asked.Result(); err == nil {
			now = told
		} else if !errors.As(err, &answer) {
			s.down.add(redisclient.Address(s.node))
		}
	}
	s.newest = max(s.newest, now.Add(s.behind+ahead).Unix())
}

func (s *sweep) takeSmall(ctx context.Context, r *reading) {
	viewers, err := r.small.Result()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		s.notHash(r)
		return
	}
	if err != nil {
		s.fail(r, "read", err)
		return
	}
	if r.large = len(viewers) == smallSize; r.large {
		s.settleOn(ctx, r) // these are some of its viewers: from now on, it is read in pages
		return
	}
	r.whole = true
	r.viewers, r.gone = int64(len(viewers)), len(viewers) == 0
	for _, v := range viewers {
		s.look(r, v.Key, v.Value)
	}
}

// follow has a large hash that moved to another master read there from its
// beginning. One that moves again is left to the next pass.
func (s *sweep) follow(ctx context.Context, r *reading, redirection error) error {
	where := strings.Fields(redirection.Error())  // "ASK 3999 127.0.0.1:6381"
	masters, _ := redisclient.Masters(ctx, s.rdb) // of a part of them, the rest is out of reach
	for _, master := range masters {
		if !r.moved && len(where) == 3 && redisclient.Address(master) == where[2] {
			r.moved, r.from, r.cursor, r.oldest, r.list = true, master, 0, 0, nil
			return nil
		}
	}
	return fmt.Errorf("it moves: %w", redirection)
}

// notHash takes the video for one that nobody is watching: its key is of another
// type, and left alone.
func (s *sweep) notHash(r *reading) {
	if !r.foreign {
		s.skip(r.key)
	}
	r.foreign, r.whole, r.gone, r.viewers = true, true, true, 0
}

// settleOn chooses who sends for the pages of a large hash. In a cluster that is
// a client of its master alone: a cursor means nothing to another master, which
// takes it all the same, so a hash that moves between two pages is to be an
// error.
func (s *sweep) settleOn(ctx context.Context, r *reading) {
	r.from = s.rdb
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return
	}
	master, err := cluster.MasterForKey(ctx, r.key)
	if err != nil {
		s.fail(r, "read", err)
		return
	}
	r.from = master
}

func (s *sweep) takePage(ctx context.Context, r *reading) {
	page, cursor, err := r.page.Result()
	if err == nil {
		err = r.size.Err()
	}
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		s.notHash(r) // any more
		return
	}
	if redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") {
		err = s.follow(ctx, r, err)
		if err == nil {
			return
		}
	}
	if err != nil {
		s.fail(r, "read", err)
		return
	}
	r.cursor, r.whole = cursor, cursor == 0
	r.viewers = r.size.Val()
	r.gone = r.viewers == 0
	for i := 0; i+1 < len(page); i += 2 {
		s.look(r, page[i], page[i+1])
	}
}

// look decides on one viewer.
func (s *sweep) look(r *reading, viewer, value string) {
	at, ok := lastSeen(value, s.newest)
	if !ok {
		r.invalid++
	}
	if !ok || at < s.oldest {
		r.stale.add(viewer, value)
		return
	}
	if r.oldest == 0 || at < r.oldest {
		r.oldest = at
	}
	s.suspect(r, viewer, value, at)
}
