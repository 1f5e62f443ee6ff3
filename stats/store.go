package stats

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"headcount/internal/keys"
)

// Options configure a Store.
type Options struct {
	Keys    keys.Keys
	Zone    *time.Location // where hours and days begin; nil: UTC
	Cache   time.Duration  // how long an answer is given again without asking Redis; 0: not at all
	Timeout time.Duration  // of one reading, repeats included; 0: 1s
}

// Store is what all statistics share: Redis, the names of keys, the zone, and a
// memory of what was answered. It is safe for concurrent use.
type Store struct {
	rdb   redis.UniversalClient
	o     Options
	known *otter.Cache[string, known]
	loads singleflight.Group
}

// known is an answer, and until when it may be given again.
type known struct {
	answer any
	until  time.Time
}

const (
	maxKnown = 10_000
	longest  = time.Minute // that an answer is given again
)

// NewStore returns a Store that reads through rdb. Call Close when done with it.
func NewStore(rdb redis.UniversalClient, o Options) (*Store, error) {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	cache, err := otter.New(&otter.Options[string, known]{
		MaximumSize:      maxKnown,
		ExpiryCalculator: otter.ExpiryWriting[string, known](longest),
	})
	if err != nil {
		return nil, fmt.Errorf("stats: cache: %w", err)
	}
	return &Store{rdb: rdb, o: o, known: cache}, nil
}

// Close stops the cache's housekeeping.
func (s *Store) Close() { s.known.StopAllGoroutines() }

// ask answers a question, spelled so that no other is: from memory while the
// answer is fresh, else by load, once for all who ask at the same time.
func ask[V any](ctx context.Context, s *Store, question string, fresh time.Duration, load func(context.Context) (V, error)) (V, error) {
	var none V
	if k, ok := s.known.GetIfPresent(question); ok && time.Now().Before(k.until) {
		return k.answer.(V), nil
	}
	result := s.loads.DoChan(question, func() (_ any, err error) {
		defer func() { // or a fault would end the process: this is a goroutine of its own
			if fault := recover(); fault != nil {
				err = fmt.Errorf("stats: panic: %v\n%s", fault, debug.Stack())
			}
		}()
		// It serves them all, so no one of them can cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
		defer cancel()
		answer, err := load(ctx)
		if err == nil && fresh > 0 {
			s.known.Set(question, known{answer, time.Now().Add(fresh)})
		}
		return answer, err
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(V), nil
	case <-ctx.Done():
		return none, fmt.Errorf("stats: gave up waiting for Redis: %w", context.Cause(ctx))
	}
}

// now is Redis's clock, in the zone.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("stats: ask Redis for the time: %w", err)
	}
	return now.In(s.o.Zone), nil
}
