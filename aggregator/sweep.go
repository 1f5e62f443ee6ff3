package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
)

// Batch sizes. They bound memory, and the time for which a pipeline keeps Redis
// from answering others.
const (
	scanCount = 1000 // keys that one SCAN looks at, roughly
	pageSize  = 512  // viewers in one page of a large hash, roughly
	smallSize = 128  // viewers in the first reading of any hash, at most
	maxOpen   = 128  // hashes read by one pipeline
	maxPages  = 4    // … of these, pages of large ones
)

// pass is what all sweeps of one pass share.
type pass struct {
	*Aggregator
	window time.Duration
	number uint8   // in the memory
	memory *memory // nil: nothing is remembered

	trusted time.Duration // see Aggregator.trusted
}

// sweep is a pass over one server.
type sweep struct {
	pass
	node   redis.UniversalClient // the server that is scanned
	now    time.Time             // when the sweep began, by the server's clock
	oldest int64                 // Unix seconds: who was seen before is stale
	newest int64                 // Unix seconds: a later time is implausible
	allTTL bool                  // every key of the database had a TTL when the sweep began
	sum    Summary
	failed failures
}

// ahead is how far the clock of another program that writes may be in front of
// Redis's before its times are implausible; behind, how far it may be slow
// without the pass missing when its viewers go stale (and a second for rounding).
const (
	ahead  = 2 * time.Minute
	behind = 2*time.Minute + time.Second
)

// newSweep asks the server for its clock: the window is a matter between the
// times in its hashes and its own time, nobody else's.
func (p pass) newSweep(ctx context.Context, node redis.UniversalClient) (*sweep, error) {
	s := &sweep{pass: p, node: node}
	now, err := node.Time(ctx).Result()
	if err != nil {
		s.sum.Errors++
		return s, fmt.Errorf("aggregator: ask Redis for the time: %w", err)
	}
	s.now = now.Truncate(time.Second)
	s.oldest = s.now.Add(-s.window).Unix()
	s.newest = s.now.Add(ahead).Unix()
	return s, nil
}

// prepare makes sure that what is remembered holds for this server, and asks
// once for all keys whether any has no TTL, so that not each must be asked.
func (s *sweep) prepare(ctx context.Context) {
	node, ok := s.node.(*redis.Client)
	if !ok {
		return
	}
	s.memory.check(node.Options().Addr, s.now)
	info, err := node.Info(ctx, "keyspace").Result()
	s.allTTL = err == nil && allHaveTTL(info, node.Options().DB)
}

// allHaveTTL reads a database's line of INFO keyspace: "db0:keys=10,expires=10,avg_ttl=0".
func allHaveTTL(info string, db int) bool {
	_, line, ok := strings.Cut(info, fmt.Sprintf("db%d:keys=", db))
	total, rest, ok2 := strings.Cut(line, ",expires=")
	withTTL, _, ok3 := strings.Cut(rest, ",")
	return ok && ok2 && ok3 && total == withTTL
}

// run scans the server and works through what it finds, a few hashes at a time:
// the pages of a large hash travel beside the first pages of others.
func (s *sweep) run(ctx context.Context) error {
	s.prepare(ctx)
	var open []*reading
	for cursor, more := uint64(0), true; (more || len(open) > 0) && ctx.Err() == nil; {
		if more && len(open) < maxOpen {
			names, next, err := s.node.Scan(ctx, cursor, s.o.Keys.OnlinePattern(), scanCount).Result()
			if err != nil {
				s.sum.Errors++
				s.failed.add(fmt.Errorf("aggregator: scan: %w", err))
				more = false
				continue // what was found so far is still counted
			}
			cursor, more = next, next != 0
			open = append(open, s.sort(ctx, names)...)
		}
		open = s.round(ctx, open)
	}
	return s.failed.join()
}

// sort tells the hashes that must be read from those whose length is their
// count, and checks the latter. A video comes by with its hash and with its
// count key; whichever is first counts for both.
func (s *sweep) sort(ctx context.Context, names []string) []*reading {
	var open, known []*reading
	for _, name := range names {
		video, isCount, ok := s.o.Keys.Parse(name)
		if !ok || (isCount && keys.CheckVideoID(video) != nil) {
			continue // nobody's: no id leads to such a key
		}
		sight := s.memory.see(video, s.number)
		if sight.handled {
			continue
		}
		r := &reading{video: video, key: s.o.Keys.Online(video), sight: sight, isCount: isCount}
		if sight.due > s.now.Unix() {
			known = append(known, r)
		} else {
			open = append(open, r)
		}
	}
	return append(open, s.check(ctx, known)...)
}

// fail gives a video up for this pass; its earlier count stays.
func (s *sweep) fail(r *reading, doing string, err error) {
	if !r.dropped {
		r.dropped = true
		s.sum.Errors++
		s.failed.add(fmt.Errorf("aggregator: video %q: %s: %w", r.video, doing, err))
	}
}

// skip leaves a key alone that is of another type than its name promises.
func (s *sweep) skip(key string) {
	s.sum.Foreign++
	s.foreign.report(key)
}

// failures keeps the first few errors of a sweep, and how many there were.
type failures struct {
	first []error
	more  int
}

func (f *failures) add(err error) {
	if len(f.first) < 5 {
		f.first = append(f.first, err)
	} else {
		f.more++
	}
}

func (f *failures) join() error {
	if f.more > 0 {
		return errors.Join(append(slices.Clip(f.first), fmt.Errorf("aggregator: and %d more errors", f.more))...)
	}
	return errors.Join(f.first...)
}
