package recorder

import (
	"context"
	"time"

	"headcount/internal/redisclient"
)

// Statistics are written beside plays, by script calls in the same pipeline. Each
// is off where it is nil; Failed is needed where one is not. A call that fails
// fails no play.
type Statistics struct {
	Online  Online
	Uniques Uniques
	Plays   Plays
	Failed  func(statistic string, err error)
}

// Online keeps who is on the site.
type Online interface {
	// Seen notes that viewers are on the site. More of them may be added to the
	// call's Args, 2,000 in all. It replies {now}, Unix seconds.
	Seen(viewers ...any) *redisclient.ScriptCall

	// Left takes a viewer from the site, unless seen after recordedAt, Unix
	// seconds; with 0 in any case.
	Left(viewerID string, recordedAt int64) *redisclient.ScriptCall
}

// Uniques keeps who watched in an hour.
type Uniques interface {
	// Watched notes that viewers, at most 2,000, watched a video now; the empty
	// id stands for any video.
	Watched(now time.Time, videoID string, viewers []any) []*redisclient.ScriptCall
}

// Plays counts how often videos are started.
type Plays interface {
	// Add notes that a video was started n times now.
	Add(now time.Time, videoID string, n int64)

	// Calls returns what is to be written of what was added; Settle takes in
	// that it was sent.
	Calls() []*redisclient.ScriptCall
	Settle()

	// Pending reports whether there is anything to be written.
	Pending() bool
}

// beside is a call of a statistic.
type beside struct {
	*redisclient.ScriptCall
	statistic string
}

// clock is Redis's, as far as its last answer to a play tells.
type clock struct{ server, ours time.Time }

// clockAge is for how long an answer tells the time: a machine may have slept since.
const clockAge = time.Minute

func (c *clock) set(unix int64) { c.server, c.ours = time.Unix(unix, 0), time.Now() }

func (c *clock) now() (now time.Time, known bool) {
	age := time.Since(c.ours)
	return c.server.Add(age), age < clockAge
}

// watched returns the calls for the viewers whom the writes have seen watching,
// at now. Of the online ones, there are others for these already unless asked for.
func (r *Recorder) watched(now time.Time, writes []*write, alsoOnline bool) (calls []beside) {
	var all []any
	s := r.o.Statistics
	for _, w := range writes {
		if w.kind != play || w.err != nil {
			continue
		}
		viewers := w.viewers()
		if s.Uniques != nil && len(viewers) > 0 {
			calls = appendCalls(calls, "uniques", s.Uniques.Watched(now, w.requests[0].video, viewers)...)
		}
		all = append(all, viewers...)
	}
	for i := 0; i < len(all); i += maxPlays {
		some := all[i:min(i+maxPlays, len(all))]
		if s.Uniques != nil {
			calls = appendCalls(calls, "uniques", s.Uniques.Watched(now, "", some)...)
		}
		if s.Online != nil && alsoOnline {
			calls = appendCalls(calls, "online", s.Online.Seen(some...))
		}
	}
	return calls
}

func appendCalls(all []beside, statistic string, calls ...*redisclient.ScriptCall) []beside {
	for _, c := range calls {
		all = append(all, beside{c, statistic})
	}
	return all
}

// send sends the writes of a batch, and with them what the earlier ones left. Who
// was seen travels along when all of them are sure to be admitted, and the hour
// is known. Otherwise it follows, as what has been started must in any case.
func (r *Recorder) send(ctx context.Context, writes []*write) (seen bool) {
	calls := make([]*redisclient.ScriptCall, len(writes))
	for i, w := range writes {
		calls[i] = &w.ScriptCall
	}
	others := r.late
	now, known := r.clock.now()
	if seen = known && r.o.MaxViewers == 0; seen {
		others = append(others, r.watched(now, writes, false)...)
	}
	r.late = nil
	r.run(ctx, calls, others)
	return seen
}

// run sends calls, and the statistics' with them.
func (r *Recorder) run(ctx context.Context, calls []*redisclient.ScriptCall, others []beside) (failed bool) {
	if r.o.Statistics.Plays != nil {
		for _, c := range r.o.Statistics.Plays.Calls() {
			others = append(others, beside{c, ""}) // it knows itself how to fail
		}
	}
	for _, o := range others {
		calls = append(calls, o.ScriptCall)
	}
	redisclient.RunScripts(ctx, r.rdb, calls)
	for _, o := range others {
		if err := o.Reply.Err(); err != nil {
			failed = true
			if o.statistic != "" {
				r.o.Statistics.Failed(o.statistic, err)
			}
		}
	}
	if r.o.Statistics.Plays != nil {
		r.o.Statistics.Plays.Settle()
	}
	return failed
}

// derive takes in what the answers to writes say.
func (r *Recorder) derive(writes []*write, seen bool) {
	s := r.o.Statistics
	for _, w := range writes {
		if w.err == nil && w.kind == play && s.Plays != nil && w.reply[3] > 0 {
			s.Plays.Add(time.Unix(w.reply[0], 0), w.requests[0].video, w.reply[3])
		}
		if w.err != nil && w.kind == online {
			s.Failed("online", w.err)
		}
	}
	if now, known := r.clock.now(); known && !seen {
		r.late = r.watched(now, writes, r.o.MaxViewers > 0)
	}
}

// writeLate sends what follows from answers. Where nothing does, it does nothing.
func (r *Recorder) writeLate(ctx context.Context) {
	for failed := false; !failed && ctx.Err() == nil; {
		others := r.late
		r.late = nil
		if len(others) == 0 && (r.o.Statistics.Plays == nil || !r.o.Statistics.Plays.Pending()) {
			return
		}
		failed = r.run(ctx, nil, others)
	}
}
