package recorder

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
)

var (
	//go:embed record.lua
	recordSource string
	//go:embed leave.lua
	leaveSource string

	recordScript = redis.NewScript(recordSource)
	leaveScript  = redis.NewScript(leaveSource)
)

// request is one Play, Leave, Online or Offline on its way to Redis. The fields below done are
// written before done is closed and read after.
type request struct {
	kind          kind
	video, viewer string
	ctx           context.Context // the caller's: whoever has given up is not written
	done          chan struct{}
	resumed       bool  // a play that goes on
	recordedAt    int64 // in: a leave's guard; out: when a play was recorded
	err           error
}

// check returns an *keys.IDError unless the ids that there are to be are acceptable.
func (q *request) check() error {
	switch q.kind {
	case flush:
		return nil
	case online, offline:
		return keys.CheckViewerID(q.viewer)
	}
	if err := keys.CheckVideoID(q.video); err != nil {
		return err
	}
	return keys.CheckViewerID(q.viewer)
}

// wait returns how the request ended, or that its caller gave up before. Whoever
// waits for several in turn may have given up after some were answered.
func (q *request) wait(ctx context.Context) (recordedAt int64, err error) {
	select {
	case <-q.done:
		return q.recordedAt, q.err
	case <-ctx.Done():
	}
	select {
	case <-q.done:
		return q.recordedAt, q.err
	default:
		return 0, fmt.Errorf("recorder: gave up waiting for a write: %w", context.Cause(ctx))
	}
}

func (q *request) finish(recordedAt int64, err error) {
	q.recordedAt, q.err = recordedAt, err
	close(q.done)
}

// commit writes a batch in one pipeline and answers its requests. What follows for
// statistics travels with the next batch or, when none waits, at once: then whoever
// has an answer finds it counted.
func (r *Recorder) commit(ctx context.Context, batch []*request) {
	g := r.group(batch)
	seen := r.send(ctx, g.writes)
	r.metrics.batch.Observe(float64(len(batch)))

	var counted, others []*write
	var failure error
	for _, w := range g.writes {
		w.reply, w.err = w.Reply.Int64Slice()
		if len(w.requests) > 0 { // and not a statistic's alone
			failure = cmp.Or(failure, outageError(w.Reply.Err()))
		}
		if w.err == nil && w.kind == play {
			w.countOnce()
			r.clock.set(w.reply[0])
		}
		if _, changes := w.newCount(); changes {
			counted = append(counted, w)
		} else {
			others = append(others, w)
		}
	}
	if len(g.writes) > 0 {
		r.outage.note(failure, time.Now())
	}
	r.derive(g.writes, seen)
	if len(g.flushes) > 0 || !r.waiting() {
		r.writeLate(ctx)
	}
	for _, w := range others {
		w.finish()
	}
	r.publish(ctx, counted)
	for _, w := range counted {
		w.finish()
	}
	for _, q := range g.flushes {
		q.finish(0, nil)
	}
}

// countOnce takes the larger number of new viewers, and of those who had not been
// watching, from a write that was carried out twice, behind a leave whose script was
// missing: the second time, those of the first are there already. Both may know
// different ones, so that some go uncounted, but none counts twice.
func (w *write) countOnce() {
	if w.Before == nil {
		return
	}
	if before, err := w.Before.Int64Slice(); err == nil {
		w.reply[1] = max(w.reply[1], before[1])
		w.reply[3] = max(w.reply[3], before[3])
	}
}

// newCount tells whether the write made or emptied the hash, and the number of
// viewers in it now. Only then is the count published at once, so that a first
// viewer shows and a last one goes without waiting for a pass.
func (w *write) newCount() (viewers int64, changes bool) {
	switch {
	case w.err != nil:
		return 0, false
	case w.kind == leave:
		removed, left := w.reply[0], w.reply[1]
		return left, removed == 1 && left == 0
	case w.kind == play:
		added, length := w.reply[1], w.reply[2]
		return length, added == length
	}
	return 0, false
}

// publish sets the counts of writes that made or emptied a hash. The plays and
// leaves themselves are in Redis by now, so a count that cannot be set fails no
// caller: the next pass sets it.
func (r *Recorder) publish(ctx context.Context, writes []*write) {
	if len(writes) == 0 {
		return
	}
	pipe := r.rdb.Pipeline()
	for _, w := range writes {
		viewers, _ := w.newCount()
		if video := w.requests[0].video; viewers > 0 {
			r.counts.Set(ctx, pipe, video, viewers)
		} else {
			r.counts.Replace(ctx, pipe, video, 0) // a leave never creates a key
		}
	}
	_, _ = pipe.Exec(ctx)
}

// finish answers the requests that the write carried out.
func (w *write) finish() {
	var recordedAt int64
	err := w.err
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // the connection's own, at the context's deadline
		err = fmt.Errorf("recorder: write: %w", context.DeadlineExceeded)
	case err != nil:
		err = fmt.Errorf("recorder: write: %w", err)
	case w.kind == play || w.kind == online:
		recordedAt = w.reply[0]
	}
	refused := w.refused()
	for i, q := range w.requests {
		if len(refused) > 0 && refused[0] == int64(i+1) {
			refused = refused[1:]
			q.finish(0, ErrFull)
		} else {
			q.finish(recordedAt, err)
		}
	}
}

// refused lists the places of the requests, from 1 and ascending, for which the
// video had no room.
func (w *write) refused() []int64 {
	if w.kind != play || w.err != nil || w.reply == nil {
		return nil
	}
	return w.reply[4:]
}
