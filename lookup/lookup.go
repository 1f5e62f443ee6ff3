// Package lookup answers how many viewers a video has, from the count keys
// that passes and recorders publish. It never reads a hash itself.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

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
	start := time.Now()
	v, outcome, err := l.find(ctx, videoID)
	l.metrics.observe(outcome, time.Since(start))
	return v.viewers, v.asOf, err
}

func (l *Lookup) find(ctx context.Context, videoID string) (value, outcome, error) {
	if err := keys.CheckVideoID(videoID); err != nil {
		return value{}, rejected, err
	}
	last, known := l.known.GetIfPresent(videoID)
	if known && time.Since(last.tried) < l.o.Cache && time.Since(last.read) < l.o.CountTTL {
		return last, cached, nil
	}
	return l.load(ctx, videoID)
}

// load asks Redis, once for all who want the same video at the same time, and
// falls back on the last known value.
func (l *Lookup) load(ctx context.Context, videoID string) (value, outcome, error) {
	type loaded struct {
		value
		outcome
	}
	result := l.loads.DoChan(videoID, func() (_ any, err error) {
		defer func() { // or a fault in counting would end the process: this is a goroutine of its own
			if fault := recover(); fault != nil {
				err = fmt.Errorf("lookup: panic: %v\n%s", fault, debug.Stack())
			}
		}()
		// It serves them all, so no one of them can cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.o.Timeout)
		defer cancel()
		v, outcome, failure := l.read(ctx, videoID)
		now := time.Now()
		if failure == nil {
			v.read = now
		} else if last, known := l.known.GetIfPresent(videoID); known && now.Sub(last.read) < l.o.CountTTL {
			v, outcome = last, stale
		} else {
			return nil, failure
		}
		// After a failure too, Redis is not asked again for as long as a value
		// is cached, or every lookup would wait for a stalled Redis.
		v.tried = now
		l.known.Set(videoID, v)
		return loaded{v, outcome}, nil
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return value{}, failed, r.Err
		}
		got := r.Val.(loaded)
		return got.value, got.outcome, nil
	case <-ctx.Done():
		return value{}, failed, fmt.Errorf("lookup: gave up waiting for Redis: %w", context.Cause(ctx))
	}
}

// read asks Redis for the count, and when it was true, in one round trip.
func (l *Lookup) read(ctx context.Context, videoID string) (value, outcome, error) {
	pipe := l.rdb.Pipeline()
	count := pipe.Get(ctx, l.o.Keys.Count(videoID))
	finished := pipe.HGet(ctx, l.o.Keys.LastPass(), "finished_at")
	now := pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each command has its own error

	asOf := l.asOf(finished, now)
	viewers, err := count.Int64()
	var syntax *strconv.NumError
	switch {
	case err == nil && viewers >= 0:
		return value{viewers: viewers, asOf: asOf}, hit, nil
	case err == nil, errors.Is(err, redis.Nil), errors.As(err, &syntax), redis.HasErrorPrefix(err, "WRONGTYPE"):
		return l.miss(ctx, videoID, asOf)
	}
	return value{}, failed, fmt.Errorf("lookup: read a count: %w", err)
}

// miss answers for a video without a (readable) count key.
func (l *Lookup) miss(ctx context.Context, videoID string, asOf time.Time) (value, outcome, error) {
	if l.o.Counter == nil {
		return value{asOf: asOf}, missing, nil
	}
	viewers, at, err := l.o.Counter.Count(ctx, videoID)
	if err != nil {
		return value{}, failed, err
	}
	if at.IsZero() {
		at = asOf // not counted but taken from the hash's length: as good as the last pass
	}
	if viewers == 0 {
		return value{asOf: at}, missing, nil
	}
	return value{viewers: viewers, asOf: at}, computed, nil
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
