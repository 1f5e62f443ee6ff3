// Package recorder writes plays and leaves to Redis, and beside them what
// statistics make of them.
//
// Requests that arrive while a write is in flight travel together in the next
// one (a group commit): one script call per video, all calls in one pipeline.
// There is no timer, so an idle recorder writes at once, and a busy one asks
// less of Redis the busier it is. A request is answered only after Redis has
// answered for it.
package recorder

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headcount/internal/counts"
	"headcount/internal/keys"
)

// ErrBusy is returned at once when the queue is full.
var ErrBusy = errors.New("recorder: queue is full")

// ErrFull is returned for a viewer who is new to a video that has MaxViewers.
var ErrFull error = fullError{}

type fullError struct{}

func (fullError) Error() string { return "recorder: the video has as many viewers as it may have" }

// VideoFull tells those who do not know this package what the error is.
func (fullError) VideoFull() {}

// Options configure a Recorder.
type Options struct {
	Keys       keys.Keys
	KeyTTL     time.Duration // of a hash, renewed by every play; whole seconds
	CountTTL   time.Duration // of a count key; whole seconds
	Timeout    time.Duration // of one write, repeats included; 0: 1s
	Queue      int           // plays and leaves waiting for a write; 0: 10,000
	Window     time.Duration // who was seen within it is watching still; whole seconds; only for Statistics.Plays
	Statistics Statistics
	MaxViewers int                   // in a video's hash, those included whom the next pass evicts; 0: any number
	Logger     *zap.Logger           // told when writes begin to fail and succeed again; nil: silent
	Registerer prometheus.Registerer // nil: metrics are kept but not exported
}

// Recorder records plays and leaves. It is safe for concurrent use.
type Recorder struct {
	rdb     redis.UniversalClient
	o       Options
	counts  counts.Writer
	metrics *metrics

	mu      sync.Mutex
	queue   []*request
	writing bool // a goroutine is in writeQueue

	outage outage // used by the write in flight, as are these
	clock  clock
	late   []beside

	window atomic.Int64 // seconds
}

// New returns a Recorder that writes through rdb.
func New(rdb redis.UniversalClient, o Options) *Recorder {
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if o.Queue == 0 {
		o.Queue = 10_000
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	r := &Recorder{
		rdb:     rdb,
		o:       o,
		counts:  counts.Writer{Keys: o.Keys, TTL: o.CountTTL},
		metrics: newMetrics(o.Registerer),
		outage:  outage{log: o.Logger},
	}
	exportQueue(o.Registerer, r.queued, o.Queue)
	r.SetWindow(o.Window)
	return r
}

// queued is how many requests wait for a write.
func (r *Recorder) queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

// SetWindow changes the window. It takes whole seconds.
func (r *Recorder) SetWindow(window time.Duration) { r.window.Store(int64(window / time.Second)) }

// Play records that the viewer is watching the video now. It returns when that
// was by Redis's clock, in Unix seconds.
//
// Errors: *keys.IDError for an unacceptable id, ErrBusy, ErrFull, ctx's, or Redis's.
// After one of the last two the play may have been recorded all the same.
func (r *Recorder) Play(ctx context.Context, videoID, viewerID string) (recordedAt int64, err error) {
	defer r.metrics.observe(ctx, play, time.Now(), &err)
	return r.do(ctx, &request{kind: play, video: videoID, viewer: viewerID})
}

// Resume is Play for a viewer who goes on watching, and whose leave just before was
// none: their page was reloaded. Statistics do not count it as another start.
func (r *Recorder) Resume(ctx context.Context, videoID, viewerID string) (recordedAt int64, err error) {
	defer r.metrics.observe(ctx, play, time.Now(), &err)
	return r.do(ctx, &request{kind: play, video: videoID, viewer: viewerID, resumed: true})
}

// Leave removes the viewer from the video, unless the viewer was seen after
// recordedAt (as returned by Play; Unix seconds), in another tab perhaps.
// Zero removes the viewer in any case. Removing nobody is not an error.
//
// Errors are those of Play, but for ErrFull.
func (r *Recorder) Leave(ctx context.Context, videoID, viewerID string, recordedAt int64) (err error) {
	defer r.metrics.observe(ctx, leave, time.Now(), &err)
	_, err = r.do(ctx, &request{kind: leave, video: videoID, viewer: viewerID, recordedAt: recordedAt})
	return err
}

// Online records that the viewer is on the site now, watching or not. It returns
// when that was, as Play does, and the errors are those of Play, but for ErrFull. It needs
// Statistics.Online.
func (r *Recorder) Online(ctx context.Context, viewerID string) (recordedAt int64, err error) {
	defer r.metrics.observe(ctx, online, time.Now(), &err)
	return r.do(ctx, &request{kind: online, viewer: viewerID})
}

// Offline takes the viewer from the site, unless the viewer was seen after
// recordedAt, watching or not; as Leave does from a video. It needs
// Statistics.Online.
func (r *Recorder) Offline(ctx context.Context, viewerID string, recordedAt int64) (err error) {
	defer r.metrics.observe(ctx, offline, time.Now(), &err)
	_, err = r.do(ctx, &request{kind: offline, viewer: viewerID, recordedAt: recordedAt})
	return err
}

// Flush writes what statistics still have to write. Call it before the program ends.
func (r *Recorder) Flush(ctx context.Context) error {
	_, err := r.do(ctx, &request{kind: flush})
	return err
}

// PlayAll is Play for many plays at once: videoIDs[i] is watched by
// viewerIDs[i]. It returns when the last of them was recorded, and an error for
// each that was not, nil for the others. They are taken all or, when the queue has no room
// for all that are acceptable, not at all.
func (r *Recorder) PlayAll(ctx context.Context, videoIDs, viewerIDs []string) (recordedAt int64, errs []error) {
	start := time.Now()
	errs = make([]error, len(videoIDs))
	queued := make([]*request, len(videoIDs)) // nil: refused
	var accepted []*request
	for i := range videoIDs {
		q := &request{kind: play, video: videoIDs[i], viewer: viewerIDs[i]}
		if errs[i] = q.check(); errs[i] == nil {
			q.ctx, q.done = ctx, make(chan struct{})
			queued[i] = q
			accepted = append(accepted, q)
		}
	}
	busy := r.enqueue(ctx, accepted...)
	for i, q := range queued {
		if q != nil && busy != nil {
			errs[i] = busy
		} else if q != nil {
			var at int64
			at, errs[i] = q.wait(ctx)
			recordedAt = max(recordedAt, at)
		}
		r.metrics.observe(ctx, play, start, &errs[i])
	}
	return recordedAt, errs
}

// waiting reports whether there is something for another write.
func (r *Recorder) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue) > 0
}

func (r *Recorder) do(ctx context.Context, q *request) (recordedAt int64, err error) {
	if err := q.check(); err != nil {
		return 0, err
	}
	q.ctx, q.done = ctx, make(chan struct{})
	if err := r.enqueue(ctx, q); err != nil {
		return 0, err
	}
	return q.wait(ctx)
}

// enqueue hands requests, all of one caller, to the write that follows the one
// in flight. When none is, the caller writes them itself, and they are answered
// when enqueue returns: another goroutine would only make an idle recorder slower.
func (r *Recorder) enqueue(ctx context.Context, requests ...*request) error {
	if len(requests) == 0 {
		return nil
	}
	r.mu.Lock()
	if len(r.queue)+len(requests) > r.o.Queue {
		r.mu.Unlock()
		return ErrBusy
	}
	if r.writing {
		r.queue = append(r.queue, requests...)
		r.mu.Unlock()
		return nil
	}
	r.writing = true
	r.mu.Unlock()
	defer r.handOver(ctx) // also when a fault in writing ends the caller's request
	r.commitOwn(ctx, requests)
	return nil
}

// handOver starts the writing of what was queued meanwhile.
func (r *Recorder) handOver(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writing = len(r.queue) > 0; r.writing {
		// The write serves every caller whose request it carries, so none of
		// them can cancel it.
		go r.writeQueue(context.WithoutCancel(ctx))
	}
}

// commitOwn commits a caller's own requests. The caller's deadline ends the
// write. Going away does not: what is under way may be in Redis already.
func (r *Recorder) commitOwn(ctx context.Context, requests []*request) {
	end := time.Now().Add(r.o.Timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	r.commit(ctx, requests)
}

// writeQueue commits until the queue is empty: one write at a time, so that
// plays and leaves reach Redis in the order they came in.
func (r *Recorder) writeQueue(ctx context.Context) {
	for r.commitQueued(ctx) {
		// So that those who are about to queue come along. On a busy recorder, each
		// round lets requests get further that were just read; on an idle one it
		// returns at once.
		for range 3 {
			runtime.Gosched()
		}
	}
}

// commitQueued reports whether there was anything to commit.
func (r *Recorder) commitQueued(ctx context.Context) bool {
	batch := r.take()
	if len(batch) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	r.commit(ctx, batch)
	return true
}

// take empties the queue, however long it is: nobody who was queued waits for
// more than the write in flight and the next.
func (r *Recorder) take() []*request {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.queue
	r.queue = nil
	r.writing = len(batch) > 0
	return batch
}
