package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
)

// Batch sizes. They bound memory, and the time that one command takes of Redis.
const (
	scanCount = 512 // keys that one SCAN looks at, roughly
	pageSize  = 512 // viewers in one page of a large hash, roughly
	maxOpen   = 128 // hashes read by one pipeline
)

// sweep is a pass over one server.
type sweep struct {
	a      *Aggregator
	node   redis.UniversalClient // the server that is scanned
	window time.Duration
	now    time.Time // when the sweep began, by the server's clock
	oldest int64     // Unix seconds: who was seen before is stale
	newest int64     // Unix seconds: a later time is implausible
	sum    Summary
	failed failures
}

// run scans the server and works through what it finds, a few hashes at a time:
// the pages of a large hash travel beside the first pages of others.
func (s *sweep) run(ctx context.Context) error {
	var open []*reading
	for cursor, more := uint64(0), true; (more || len(open) > 0) && ctx.Err() == nil; {
		if more && len(open) < maxOpen {
			names, next, err := s.node.Scan(ctx, cursor, s.a.o.Keys.OnlinePattern(), scanCount).Result()
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

// sort tells hashes from count keys by name, and returns the hashes to read.
func (s *sweep) sort(ctx context.Context, names []string) []*reading {
	slices.Sort(names) // SCAN may return a name twice
	var open []*reading
	var counted []string
	for _, name := range slices.Compact(names) {
		switch video, count, ok := s.a.o.Keys.Parse(name); {
		case !ok, count && keys.CheckVideoID(video) != nil: // nobody's: no id leads to such a key
		case count:
			counted = append(counted, video)
		default:
			open = append(open, &reading{video: video, key: name})
		}
	}
	return append(open, s.zeroOrphans(ctx, counted)...)
}

// round reads a page of each open hash, evicts who is stale, publishes the
// hashes that are read to their end, and returns those that are not.
func (s *sweep) round(ctx context.Context, open []*reading) []*reading {
	var unfinished []*reading
	for batch := range slices.Chunk(open, maxOpen) {
		s.readPages(ctx, batch)
		s.evict(ctx, batch)
		var finished []*reading
		for _, r := range batch {
			switch {
			case r.dropped:
			case r.cursor != 0:
				unfinished = append(unfinished, r)
			default:
				finished = append(finished, r)
			}
		}
		s.publish(ctx, finished)
	}
	return unfinished
}

// fail gives a hash up for this pass; its earlier count stays.
func (s *sweep) fail(r *reading, doing string, err error) {
	if !r.dropped {
		r.dropped = true
		s.failVideo(r.video, doing, err)
	}
}

func (s *sweep) failVideo(videoID, doing string, err error) {
	s.sum.Errors++
	s.failed.add(fmt.Errorf("aggregator: video %q: %s: %w", videoID, doing, err))
}

// skip leaves a key alone that is of another type than its name promises.
func (s *sweep) skip(key string) {
	s.sum.Foreign++
	s.a.foreign.report(key)
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
