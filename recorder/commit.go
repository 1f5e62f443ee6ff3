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
	"headcount/internal/redisclient"
)

var (
	//go:embed record.lua
	recordSource string
	//go:embed leave.lua
	leaveSource string

	recordScript = redis.NewScript(recordSource)
	leaveScript  = redis.NewScript(leaveSource)
)

// request is one Play or Leave on its way to Redis. The fields below done are
// written before done is closed and read after.
type request struct {
	kind          kind
	video, viewer string
	ctx           context.Context // the caller's: whoever has given up is not written
	done          chan struct{}
	recordedAt    int64 // in: a leave's guard; out: when a play was recorded
	err           error
}

// check returns an *keys.IDError unless both ids are acceptable.
func (q *request) check() error {
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

// write is one script call with the requests that it carries out: any number
// of plays of one video, or one leave.
type write struct {
	redisclient.ScriptCall
	requests []*request
	reply    []int64 // as the script's header says
	err      error
}

// maxPlays keeps a call well below the number of values that Lua can unpack.
const maxPlays = 2000

// commit writes a batch in one pipeline and answers its requests.
func (r *Recorder) commit(ctx context.Context, batch []*request) {
	writes := r.group(batch)
	calls := make([]*redisclient.ScriptCall, len(writes))
	for i, w := range writes {
		calls[i] = &w.ScriptCall
	}
	redisclient.RunScripts(ctx, r.rdb, calls)
	r.metrics.batch.Observe(float64(len(batch)))

	var counted []*write
	var failure error
	for _, w := range writes {
		w.reply, w.err = w.Reply.Int64Slice()
		failure = cmp.Or(failure, outageError(w.Reply.Err()))
		if _, changes := w.newCount(); changes {
			counted = append(counted, w)
		} else {
			w.finish()
		}
	}
	r.publish(ctx, counted)
	for _, w := range counted {
		w.finish()
	}
	if len(writes) > 0 {
		r.outage.note(failure, time.Now())
	}
}

// group turns requests into script calls. The plays of a video share a call; a
// leave is a call of its own, and the plays after it start another, so that
// each video's requests are carried out in their order.
func (r *Recorder) group(batch []*request) []*write {
	var writes []*write
	open := make(map[string]*write) // video → the call that takes its next play
	for _, q := range batch {
		if q.ctx.Err() != nil {
			q.finish(0, context.Cause(q.ctx))
			continue
		}
		w := open[q.video]
		if q.kind == leave || w == nil || len(w.requests) == maxPlays {
			w = r.newWrite(q)
			writes = append(writes, w)
		}
		w.requests = append(w.requests, q)
		if q.kind == leave {
			w.Args = []any{q.viewer, q.recordedAt}
			delete(open, q.video)
		} else {
			w.Args = append(w.Args, q.viewer)
			open[q.video] = w
		}
	}
	return writes
}

func (r *Recorder) newWrite(q *request) *write {
	w := &write{ScriptCall: redisclient.ScriptCall{Script: leaveScript, Key: r.o.Keys.Online(q.video)}}
	if q.kind == play {
		w.Script = recordScript
		w.Args = []any{int64(r.o.KeyTTL / time.Second), r.o.MaxViewers}
	}
	return w
}

// newCount tells whether the write made or emptied the hash, and the number of
// viewers in it now. Only then is the count published at once, so that a first
// viewer shows and a last one goes without waiting for a pass.
func (w *write) newCount() (viewers int64, changes bool) {
	switch {
	case w.err != nil:
		return 0, false
	case w.Script == leaveScript:
		removed, left := w.reply[0], w.reply[1]
		return left, removed == 1 && left == 0
	}
	added, length := w.reply[1], w.reply[2]
	return length, added == length
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
	case w.Script == recordScript:
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
	if w.Script == leaveScript || w.err != nil {
		return nil
	}
	return w.reply[3:]
}
