// Package aggregator makes the pass: it reads every video's viewers, evicts
// those who left, and publishes how many are watching.
//
// The hashes are the truth and a pass is a function of them, so a pass may be
// repeated, interrupted, or made twice at once: the counts are the same.
//
//	SCAN ──► a video, by its hash or its count key, whichever comes first
//	          ├─ somebody can be stale ──► read, evict.lua ──┐
//	          ├─ nobody can ─────────────► HLEN ─────────────┼──► its count key
//	          └─ its hash is gone ───────► 0 ────────────────┘
package aggregator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headcount/internal/counts"
	"headcount/internal/keys"
	"headcount/internal/lastpass"
)

// Options configure an Aggregator.
type Options struct {
	Keys       keys.Keys
	Window     time.Duration         // who was seen within it is online; whole seconds
	KeyTTL     time.Duration         // for hashes that another program left without one; whole seconds
	CountTTL   time.Duration         // of a count key; whole seconds
	Holder     string                // who makes the passes, for the last-pass hash: "host:pid"
	Logger     *zap.Logger           // nil: silent
	Registerer prometheus.Registerer // nil: metrics are kept but not exported
	Shared     bool                  // the database holds more than this, so that it is not strange when a pass finds nothing

	// Observe, if set, is called when a pass begins, by Redis's clock, and what it
	// returns is told what the pass finds. Passes must then follow each other.
	Observe func(began time.Time) Observer
}

// Observer is told what a pass finds, to derive something from it. Its failures
// are its own: they make no pass partial.
type Observer interface {
	// Anew reports whether counts are to be told as risen that were told in
	// earlier passes.
	Anew() bool

	// Counted takes the counts of some videos that have viewers. It is called from several
	// goroutines. A count has risen when it is larger than all that were told of
	// the video since Anew was last true, as far as the worker remembers.
	Counted(ctx context.Context, videos []counts.Count)

	// Over is called when the pass is over, unless it was cut short: when that was by Redis's clock,
	// viewers over all videos, and whether it is complete.
	Over(ctx context.Context, at time.Time, viewers int64, complete bool)
}

// Aggregator makes passes and counts single videos. It is safe for concurrent use.
type Aggregator struct {
	rdb     redis.UniversalClient
	o       Options
	counts  counts.Writer
	window  atomic.Int64 // time.Duration
	metrics *metrics
	foreign foreignLog
	kept    atomic.Pointer[memory] // from pass to pass
	lent    atomic.Pointer[trust]  // what the counts of an earlier pass were trusted for
	empty   atomic.Bool            // the last pass found nothing in a database that holds something
}

// New returns an Aggregator. Its passes are long: give it a client of its own,
// so that they never queue in front of plays.
func New(rdb redis.UniversalClient, o Options) *Aggregator {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	a := &Aggregator{
		rdb:     rdb,
		o:       o,
		counts:  counts.Writer{Keys: o.Keys, TTL: o.CountTTL},
		metrics: newMetrics(o.Registerer),
		foreign: foreignLog{log: o.Logger},
	}
	a.SetWindow(o.Window)
	return a
}

// SetWindow changes the window from the next pass on. It takes whole seconds.
func (a *Aggregator) SetWindow(window time.Duration) { a.window.Store(int64(window)) }

// ErrCutShort is returned by a pass whose context ended, with the context's cause,
// and by one that may not write any more.
var ErrCutShort = errors.New("aggregator: pass cut short")

var errMayNotWrite = errors.New("it may not write any more")

// Summary is what a pass found and did.
type Summary struct {
	Started, Finished time.Time     // by Redis's clock, whole seconds
	Took              time.Duration // by ours
	Keys              int64         // under the prefix: hashes and counts
	Videos            int64         // with at least one viewer
	Viewers           int64         // over all videos
	Read              int64         // hashes that were read
	Skipped           int64         // hashes that were told by their length: nobody in them can be stale
	Evicted           int64         // viewers removed: stale ones and Invalid ones
	Invalid           int64         // viewers removed because their value was no plausible time
	Healed            int64         // hashes and counts that had no TTL, or one that would have lost a viewer
	Foreign           int64         // keys of another type under our prefix, left alone
	Errors            int64         // videos, and scans of a server, that failed; 0 means complete
}

// add takes in the findings of one server.
func (s *Summary) add(o *Summary) {
	s.Keys += o.Keys
	s.Videos += o.Videos
	s.Viewers += o.Viewers
	s.Read += o.Read
	s.Skipped += o.Skipped
	s.Evicted += o.Evicted
	s.Invalid += o.Invalid
	s.Healed += o.Healed
	s.Foreign += o.Foreign
	s.Errors += o.Errors
}

// Pass counts every video once. Where anything about a video fails, its earlier
// count stays, the others go on, and Pass returns what it did together with the
// errors joined (the first few of them; Summary.Errors has how many). When ctx
// ends, Pass stops with ErrCutShort.
func (a *Aggregator) Pass(ctx context.Context) (Summary, error) {
	return a.PassWhile(ctx, func() bool { return true })
}

// PassWhile is Pass for who may lose the right to it. mayWrite is asked before
// each batch of writes; where it says no, nothing more is written, and the pass
// ends with ErrCutShort.
func (a *Aggregator) PassWhile(ctx context.Context, mayWrite func() bool) (Summary, error) {
	began := time.Now()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	sum, err := a.sweepAll(ctx, began, func() {
		if !mayWrite() {
			end(errMayNotWrite)
		}
	})
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrCutShort, context.Cause(ctx))
		sum.Errors = 0 // what failed, failed because of that
	}
	sum.Took = time.Since(began)
	a.metrics.observe(sum, err)
	return sum, err
}

func (a *Aggregator) sweepAll(ctx context.Context, began time.Time, beforeWrites func()) (Summary, error) {
	p, sweeps, err := a.begin(ctx)
	p.beforeWrites = beforeWrites
	if len(sweeps) == 0 { // no server could be reached at all
		return Summary{Errors: 1}, err
	}
	sum := Summary{Started: p.now}
	if err != nil {
		sum.Errors++
	}
	err = errors.Join(err, sideBySide(sweeps, func(s *sweep) error { return s.run(ctx) }))
	for _, s := range sweeps {
		sum.add(&s.sum)
	}
	beforeWrites()
	if ctx.Err() != nil {
		return sum, err
	}
	finished := sweeps[0].clock.at(time.Now())
	sum.Finished, sum.Took = finished.Truncate(time.Second), time.Since(began)
	err = errors.Join(err, a.conclude(ctx, p, &sum))
	if p.observer != nil {
		p.observer.Over(ctx, finished, sum.Viewers, err == nil)
	}
	return sum, err
}

// conclude writes down the pass for everybody to read, and warns where it found
// nothing although there is something: often a wrong prefix or database.
func (a *Aggregator) conclude(ctx context.Context, p *pass, sum *Summary) error {
	if err := a.writeLastPass(ctx, p, sum); err != nil {
		sum.Errors++
		return fmt.Errorf("aggregator: write %s: %w", a.o.Keys.LastPass(), err)
	}
	return a.warnIfEmpty(ctx, sum)
}

func (a *Aggregator) writeLastPass(ctx context.Context, p *pass, sum *Summary) error {
	return lastpass.Write(ctx, a.rdb, a.o.Keys.LastPass(), a.o.KeyTTL, lastpass.Pass{
		StartedAt:  sum.Started.Unix(),
		FinishedAt: sum.Finished.Unix(),
		TookMS:     sum.Took.Milliseconds(),
		Videos:     sum.Videos,
		Viewers:    sum.Viewers,
		Read:       sum.Read,
		Skipped:    sum.Skipped,
		Evicted:    sum.Evicted,
		Errors:     sum.Errors,
		Holder:     a.o.Holder,

		CountsUntil: p.countsUntil(),
	})
}

func (a *Aggregator) warnIfEmpty(ctx context.Context, sum *Summary) error {
	if sum.Keys > 0 || sum.Errors > 0 || a.o.Shared {
		a.empty.Store(false)
		return nil
	}
	size, err := a.rdb.DBSize(ctx).Result()
	if err != nil {
		sum.Errors++
		return fmt.Errorf("aggregator: ask for the database's size: %w", err)
	}
	ours := int64(2) // the lease and the last pass
	if a.o.Observe != nil {
		ours = 4 // and of statistics the site's history and its peaks
	}
	if size <= ours || a.knownHere(ctx) {
		a.empty.Store(false)
	} else if !a.empty.Swap(true) {
		a.o.Logger.Warn("the pass found nothing, but the database is not empty: check prefix and redis.db if viewers are expected",
			zap.String("pattern", a.o.Keys.OnlinePattern()), zap.Int64("keys_in_database", size))
	}
	return nil
}

// knownHere reports whether recorders have counted plays under the prefix, so that
// it is the right one though nobody is watching now.
func (a *Aggregator) knownHere(ctx context.Context) bool {
	plays, err := a.rdb.HLen(ctx, a.o.Keys.Plays("")).Result()
	return err == nil && plays > 0
}

// maxCount is the largest hash that Count reads.
const maxCount = 10_000

// Count counts one video now, as a pass does, and publishes the count if the
// video has a hash. at is when the number was true, by Redis's clock. A hash of
// more than 10,000 viewers is answered by its length, which may include some
// who left since the last pass; at is zero then, and nothing is published.
func (a *Aggregator) Count(ctx context.Context, videoID string) (viewers int64, at time.Time, err error) {
	now, err := a.rdb.Time(ctx).Result()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("aggregator: ask Redis for the time: %w", err)
	}
	s := &sweep{pass: &pass{Aggregator: a, window: time.Duration(a.window.Load()), beforeWrites: func() {}}, node: a.rdb}
	s.setClock(now)
	s.clock = reference{server: now, ours: time.Now()}
	length, err := a.rdb.HLen(ctx, a.o.Keys.Online(videoID)).Result()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return 0, s.now, nil // not a video's hash, so nobody is watching
	case err != nil:
		return 0, time.Time{}, fmt.Errorf("aggregator: count one video: %w", err)
	case length == 0:
		return 0, s.now, nil
	case length > maxCount:
		return length, time.Time{}, nil
	}
	r := &reading{video: videoID, key: a.o.Keys.Online(videoID)}
	for open := []*reading{r}; len(open) > 0; {
		open = s.round(ctx, open)
	}
	return r.viewers, s.now, s.failed.join()
}
