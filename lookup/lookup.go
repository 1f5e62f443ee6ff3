// Package lookup answers how many viewers a video has, from the count keys
// that passes and recorders publish. It reads no hash; a Counter may.
package lookup

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"headcount/internal/counts"
	"headcount/internal/keys"
)

// Counter counts one video that has no count key. at is when the number was
// true, zero if that cannot be told.
type Counter interface {
	Count(ctx context.Context, videoID string) (viewers int64, at time.Time, err error)
}

// Options configure a Lookup.
type Options struct {
	Keys       keys.Keys
	CountTTL   time.Duration         // how long the last known value may be served while Redis is down, and how old the last pass may be
	Cache      time.Duration         // how long a value is served without asking Redis; 0: not at all
	Counter    Counter               // counts a video that has no count key; nil: such a video has 0 viewers
	Timeout    time.Duration         // of one reading, repeats and counting included; 0: 1s
	Registerer prometheus.Registerer // nil: metrics are kept but not exported
}

// Lookup answers lookups. It is safe for concurrent use.
type Lookup struct {
	rdb     redis.UniversalClient
	o       Options
	metrics *metrics
	known   *otter.Cache[string, value]
	loads   singleflight.Group
}

// value is what is known of one video.
type value struct {
	viewers int64
	asOf    time.Time // zero: unknown
	read    time.Time // when Redis said so, by our clock
	tried   time.Time // when Redis was last asked, by our clock
}

// maxKnown bounds the memory of the cache; the least used values go first.
const maxKnown = 100_000

// New returns a Lookup that reads through rdb. Call Close when done with it.
func New(rdb redis.UniversalClient, o Options) (*Lookup, error) {
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	known, err := otter.New(&otter.Options[string, value]{
		MaximumSize:      maxKnown,
		ExpiryCalculator: otter.ExpiryWriting[string, value](o.CountTTL),
	})
	if err != nil {
		return nil, fmt.Errorf("lookup: cache: %w", err)
	}
	return &Lookup{rdb: rdb, o: o, metrics: newMetrics(o.Registerer), known: known}, nil
}

// Close stops the cache's housekeeping.
func (l *Lookup) Close() { l.known.StopAllGoroutines() }

// Viewers returns how many viewers the video has, and as of when that was true
// by Redis's clock: the last complete pass, or now for a video counted for this
// very lookup. asOf is zero when no pass has finished within CountTTL: the
// number may be right, but nobody can tell.
//
// While Redis cannot be asked, the last known value is returned until it is
// CountTTL old. Errors: *keys.IDError, ctx's, or Redis's.
func (l *Lookup) Viewers(ctx context.Context, videoID string) (viewers int64, asOf time.Time, err error) {
	if err := keys.CheckVideoID(videoID); err != nil {
		l.metrics.observe(time.Now(), rejected)
		return 0, time.Time{}, err
	}
	start := time.Now()
	if last, fresh := l.remembered(videoID, start); fresh {
		l.metrics.answered(answer{last, cached})
		l.metrics.took(start)
		return last.viewers, last.asOf, nil
	}
	counts, asOf, err := l.find(ctx, []string{videoID})
	if err != nil {
		return 0, time.Time{}, err
	}
	return counts[0], asOf, nil
}

// Batch is Viewers for several videos, in their order, which it asks of Redis
// together. asOf is when all the numbers were true: the earliest of their times, and zero
// when one of them is unknown. An *keys.IDError names the id by its place.
func (l *Lookup) Batch(ctx context.Context, videoIDs []string) (viewers []int64, asOf time.Time, err error) {
	for i, id := range videoIDs {
		if err := keys.CheckVideoID(id); err != nil {
			l.metrics.observe(time.Now(), rejected)
			return nil, time.Time{}, keys.AtIndex(err, i)
		}
	}
	return l.find(ctx, videoIDs)
}

// find answers from memory where it may, and asks Redis for the rest.
func (l *Lookup) find(ctx context.Context, videoIDs []string) (viewers []int64, asOf time.Time, err error) {
	start := time.Now()
	found := make(map[string]answer, len(videoIDs))
	var unknown []string
	for _, id := range videoIDs {
		if _, twice := found[id]; twice {
			continue
		}
		if last, fresh := l.remembered(id, start); fresh {
			found[id] = answer{last, cached}
			continue
		}
		found[id] = answer{outcome: failed}
		unknown = append(unknown, id)
	}
	if len(unknown) > 0 {
		loaded, err := l.load(ctx, unknown)
		if err != nil {
			l.metrics.observe(start, failed)
			return nil, time.Time{}, err
		}
		for i, id := range unknown {
			found[id] = loaded[i]
		}
	}
	viewers = make([]int64, len(videoIDs))
	for i, id := range videoIDs {
		a := found[id]
		viewers[i] = a.viewers
		if i == 0 || a.asOf.Before(asOf) { // the zero time, for unknown, is before all others
			asOf = a.asOf
		}
		l.metrics.answered(a)
	}
	l.metrics.took(start)
	return viewers, asOf, nil
}

// remembered returns what may be answered without asking Redis.
func (l *Lookup) remembered(videoID string, now time.Time) (last value, fresh bool) {
	last, known := l.known.GetIfPresent(videoID)
	return last, known && now.Sub(last.tried) < l.o.Cache && now.Sub(last.read) < l.o.CountTTL
}

// answer is a value and how it was come by.
type answer struct {
	value
	outcome
}

// load asks Redis, once for all who want the same videos at the same time, and
// falls back on the last known values.
func (l *Lookup) load(ctx context.Context, videoIDs []string) ([]answer, error) {
	// No id holds a control character, so the joined ones are told apart.
	result := l.loads.DoChan(strings.Join(videoIDs, "\n"), func() (_ any, err error) {
		defer func() { // or a fault in counting would end the process: this is a goroutine of its own
			if fault := recover(); fault != nil {
				err = fmt.Errorf("lookup: panic: %v\n%s", fault, debug.Stack())
			}
		}()
		// It serves them all, so no one of them can cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.o.Timeout)
		defer cancel()
		return l.ask(ctx, videoIDs)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.([]answer), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("lookup: gave up waiting for Redis: %w", context.Cause(ctx))
	}
}

// ask reads the videos, notes what it learned, and takes the last known value
// where that failed. It fails where there is none.
func (l *Lookup) ask(ctx context.Context, videoIDs []string) ([]answer, error) {
	answers, errs := l.read(ctx, videoIDs)
	now := time.Now()
	for i, id := range videoIDs {
		a := &answers[i]
		if errs[i] == nil {
			a.read = now
		} else if last, known := l.known.GetIfPresent(id); known && now.Sub(last.read) < l.o.CountTTL {
			*a = answer{last, stale}
		} else {
			return nil, errs[i]
		}
		// After a failure too, Redis is not asked again for as long as a value
		// is cached, or every lookup would wait for a stalled Redis.
		a.tried = now
		l.known.Set(id, a.value)
	}
	return answers, nil
}

// read asks Redis for the counts, and when they were true, in one round trip,
// and counts the videos that have no count.
func (l *Lookup) read(ctx context.Context, videoIDs []string) (answers []answer, errs []error) {
	answers, errs = make([]answer, len(videoIDs)), make([]error, len(videoIDs))
	pipe := l.rdb.Pipeline()
	published := counts.Get(ctx, l.rdb, pipe, l.o.Keys, videoIDs)
	finished := pipe.HGet(ctx, l.o.Keys.LastPass(), "finished_at")
	now := pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each command has its own error

	asOf := l.asOf(finished, now)
	for i, id := range videoIDs {
		value, err := published(i)
		viewers, syntax := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("lookup: read a count: %w", err)
		case syntax == nil && viewers >= 0:
			answers[i].viewers, answers[i].asOf, answers[i].outcome = viewers, asOf, hit
		default: // none, or one that is not ours
			answers[i], errs[i] = l.miss(ctx, id, asOf)
		}
	}
	return answers, errs
}

// miss answers for a video without a (readable) count key.
func (l *Lookup) miss(ctx context.Context, videoID string, asOf time.Time) (answer, error) {
	if l.o.Counter == nil {
		return answer{value{asOf: asOf}, missing}, nil
	}
	viewers, at, err := l.o.Counter.Count(ctx, videoID)
	if err != nil {
		return answer{outcome: failed}, err
	}
	if at.IsZero() {
		at = asOf // not counted but taken from the hash's length: as good as the last pass
	}
	if viewers == 0 {
		return answer{value{asOf: at}, missing}, nil
	}
	return answer{value{viewers: viewers, asOf: at}, computed}, nil
}

// asOf is when the last complete pass finished, or zero if that is too long ago
// or cannot be read: on a cluster the count may be within reach and this not.
func (l *Lookup) asOf(finished *redis.StringCmd, now *redis.TimeCmd) time.Time {
	seconds, err := finished.Int64()
	if err != nil || now.Err() != nil {
		return time.Time{}
	}
	at := time.Unix(seconds, 0)
	if now.Val().Sub(at) > l.o.CountTTL {
		return time.Time{}
	}
	return at
}
