package recorder

import (
	"context"
	"time"

	"headcount/internal/redisclient"
)

// write is one script call with the requests that it carries out: any number
// of plays of one video, or of heartbeats, or one leave.
type write struct {
	redisclient.ScriptCall
	kind     kind
	names    int // ids of viewers among the Args
	requests []*request
	reply    []int64 // as the script's header says
	err      error
}

// maxPlays keeps a call well below the number of values that Lua can unpack.
const maxPlays = 2000

// site is where a heartbeat or a leave of the site belongs, among videos.
const site = ""

// grouping is a batch of requests as it travels.
type grouping struct {
	*Recorder
	writes  []*write
	flushes []*request
	open    map[string]*write // video, or the site → the call that takes its next viewer
}

// group turns requests into script calls. The plays of a video share a call, as do
// heartbeats; a leave is a call of its own, and what comes after it starts
// another, so that the requests for each video, and for the site, are carried out
// in their order. A play that cannot be refused is a heartbeat, too.
func (r *Recorder) group(batch []*request) *grouping {
	g := &grouping{Recorder: r, open: make(map[string]*write)}
	for _, q := range batch {
		if q.ctx.Err() != nil {
			q.finish(0, context.Cause(q.ctx))
			continue
		}
		switch q.kind {
		case play:
			if q.resumed {
				delete(g.open, q.video)
			}
			g.join(q.video, q, play).answers(q)
			if q.resumed { // in a call of its own, which does not ask who has just started
				delete(g.open, q.video)
			}
			if r.o.Statistics.Online != nil && r.o.MaxViewers == 0 {
				g.join(site, q, online)
			}
		case online:
			g.join(site, q, online).answers(q)
		case leave, offline:
			g.start(q.video, q, q.kind).answers(q)
			delete(g.open, q.video) // which is the site's for one who goes offline
		case flush:
			g.flushes = append(g.flushes, q)
		}
	}
	return g
}

// join adds a request's viewer to the open call there.
func (g *grouping) join(place string, q *request, k kind) *write {
	w := g.open[place]
	if w == nil || w.names == maxPlays {
		w = g.start(place, q, k)
	}
	w.Args = append(w.Args, q.viewer)
	w.names++
	return w
}

// start makes a call.
func (g *grouping) start(place string, q *request, k kind) *write {
	w := &write{kind: k}
	switch key := g.o.Keys.Online(q.video); k {
	case play:
		w.ScriptCall = redisclient.ScriptCall{Script: recordScript, Key: key, Args: g.playArgs(q)}
	case leave:
		w.ScriptCall = redisclient.ScriptCall{Script: leaveScript, Key: key, Args: []any{q.viewer, q.recordedAt}}
	case online:
		w.ScriptCall = *g.o.Statistics.Online.Seen()
	case offline:
		w.ScriptCall = *g.o.Statistics.Online.Left(q.viewer, q.recordedAt)
	}
	g.writes = append(g.writes, w)
	g.open[place] = w
	return w
}

// playArgs are those of record.lua before the viewers.
func (r *Recorder) playArgs(q *request) []any {
	var window int64
	if r.o.Statistics.Plays != nil && !q.resumed {
		window = r.window.Load()
	}
	return []any{int64(r.o.KeyTTL / time.Second), r.o.MaxViewers, window}
}

// answers has the call's outcome answer the request.
func (w *write) answers(q *request) { w.requests = append(w.requests, q) }

// viewers are those whom a write of plays records, as far as known.
func (w *write) viewers() []any {
	viewers, refused := w.Args[len(w.Args)-w.names:], w.refused()
	if len(refused) == 0 {
		return viewers
	}
	var admitted []any
	for i, viewer := range viewers {
		if len(refused) > 0 && refused[0] == int64(i+1) {
			refused = refused[1:]
		} else {
			admitted = append(admitted, viewer)
		}
	}
	return admitted
}
