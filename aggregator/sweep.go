package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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

// sweep is a pass over one server.
type sweep struct {
	*pass
	node        redis.UniversalClient // the server that is scanned
	met         bool                  // it has answered, so that the next four are known
	server      string                // its identity
	clock       reference             // when the pass began
	behind      time.Duration         // its clock is slower than the fastest of all by that
	newest      int64                 // Unix seconds: a later time is implausible, of what was just read
	size        int64                 // keys in its database when the pass began
	noneForever bool                  // each of them had a TTL
	listed      int                   // bytes of suspects found
	room        int                   // … that there is room for
	sum         Summary
	failed      failures
}

// run scans the server and works through what it finds, a few hashes at a time:
// the pages of a large hash travel beside the first pages of others.
func (s *sweep) run(ctx context.Context) error {
	s.room = s.memory.room() / s.masters
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
	s.confirm(ctx)
	return s.failed.join()
}

// confirm makes sure that one server answered all along. A cursor means nothing
// to another one, or to the same after a restart, which takes it all the same:
// the scan has then passed over some keys.
func (s *sweep) confirm(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	info, err := s.node.Info(ctx, "server").Result()
	var answer redis.Error
	if err == nil || errors.As(err, &answer) {
		err = nil
		if identity(s.node, info) != s.server {
			err = errTookOver
		}
	}
	if err != nil {
		s.sum.Errors++
		s.failed.add(fmt.Errorf("aggregator: scan: %w", err))
	}
}

var errTookOver = errors.New("another server took over, or this one was restarted")

// sort tells the hashes that must be read from those whose length is their
// count, once the suspects among them are evicted, and checks the latter. A video comes by with its hash and with its
// count key; whichever is first counts for both. Where the memory has no place
// for it, the hash is what counts, and the count key is only checked for one.
func (s *sweep) sort(ctx context.Context, names []string) []*reading {
	var open, known []*reading
	for _, name := range names {
		video, isCount, ok := s.o.Keys.Parse(name)
		if !ok || (isCount && strings.HasPrefix(video, "count:")) {
			continue // nobody's: no hash leads to such a key
		}
		s.sum.Keys++
		sight := s.memory.see(video, s.number)
		if sight.handled {
			continue
		}
		r := &reading{video: video, key: s.o.Keys.Online(video), sight: sight, isCount: isCount}
		r.checked = isCount && sight.index == nowhere
		switch {
		case r.checked || sight.due > s.now.Unix():
			known = append(known, r)
		case sight.suspects.until > s.now.Unix():
			r.stale, r.suspects = sight.suspects.split(s.oldest)
			r.due = r.suspects.next(s.window)
			known = append(known, r)
		default:
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
