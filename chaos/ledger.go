package chaos

import (
	"math"
	"sync"
	"time"
)

// viewing is one viewer of one video.
type viewing struct{ video, viewer string }

// outcome is what a client knows of what it asked for.
type outcome int

const (
	unknown      outcome = iota // no answer, or one that leaves it open: it was done, or not, or will be yet
	acknowledged                // done
	refused                     // not done, for certain
)

// entry is one play or leave that a client sent.
type entry struct {
	leave   bool
	site    bool // a heartbeat, or a leave of the site
	outcome outcome
	sent    time.Time

	// recordedAt is, of a play, the time in its answer and, of a leave, its guard; Unix seconds.
	recordedAt int64

	// atLeast is the earliest time that an acknowledged play can be stored with: of one that was alone in its request
	// recordedAt, but a batch's answer has only the time of its last play.
	atLeast int64

	settled time.Time // when the answer came
}

// ledger is what the suite's clients sent, and what they were told. It is safe for concurrent use.
type ledger struct {
	mu           sync.Mutex
	entries      map[viewing][]*entry // in the order sent: a viewing has one client, which waits for each answer
	site         map[string][]*entry  // likewise, by viewer: plays, heartbeats, and leaves of the site
	troubles     []period             // in which requests were not answered, or late
	newest       int64                // the latest time in any answer so far
	acknowledged int
	unknown      int
}

func newLedger() *ledger {
	return &ledger{entries: make(map[viewing][]*entry), site: make(map[string][]*entry)}
}

// period is from one moment to another.
type period struct{ from, to time.Time }

// late is after what time an answer tells of trouble: the shortest time-out of Redis in the suite, after which a write is
// sent again.
const late = 200 * time.Millisecond

// trouble notes when a request was under way that was not answered, or late. Periods that touch become one.
func (l *ledger) trouble(s period) {
	for n := len(l.troubles); n > 0 && !l.troubles[n-1].to.Before(s.from); n = len(l.troubles) {
		before := l.troubles[n-1]
		if before.from.Before(s.from) {
			s.from = before.from
		}
		if before.to.After(s.to) {
			s.to = before.to
		}
		l.troubles = l.troubles[:n-1]
	}
	l.troubles = append(l.troubles, s)
}

// sendSite notes a heartbeat, or a leave of the site, that is about to be sent.
func (l *ledger) sendSite(guard int64, leave bool, viewer string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &entry{site: true, leave: leave, recordedAt: guard, atLeast: l.newest, sent: time.Now()}
	l.site[viewer] = append(l.site[viewer], e)
	l.unknown++
	return e
}

// send notes plays or leaves that are about to be sent together. Until settle, their outcome is unknown.
func (l *ledger) send(guard int64, leave bool, viewings ...viewing) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := make([]*entry, len(viewings))
	for i, v := range viewings {
		sent[i] = &entry{leave: leave, recordedAt: guard, atLeast: l.newest, sent: time.Now()}
		l.entries[v] = append(l.entries[v], sent[i])
		if !leave {
			l.site[v.viewer] = append(l.site[v.viewer], sent[i])
		}
	}
	l.unknown += len(sent)
	return sent
}

// settle notes how one ended. at is the time in a play's answer; alone says that the request had no other play.
func (l *ledger) settle(e *entry, o outcome, at int64, alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.outcome, e.settled = o, time.Now()
	if o == unknown || e.settled.Sub(e.sent) > late {
		l.trouble(period{e.sent, e.settled})
	}
	if o != unknown {
		l.unknown--
	}
	if o != acknowledged {
		return
	}
	l.acknowledged++
	if e.leave {
		return
	}
	e.recordedAt = at
	if alone {
		e.atLeast = at
	}
	l.newest = max(l.newest, at)
}

// doubt takes back what was acknowledged from a moment to another, as what Redis may have lost with a master that had not
// passed it on yet. It returns how much that is.
func (l *ledger) doubt(from, to time.Time) (doubted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	take := func(entries []*entry) {
		for _, e := range entries {
			if e.outcome == acknowledged && !e.settled.Before(from) && !e.settled.After(to) {
				e.outcome = unknown
				doubted++
			}
		}
	}
	for _, entries := range l.entries {
		take(entries)
	}
	for _, entries := range l.site { // but for plays, which are taken already
		take(entries)
	}
	return doubted
}

// totals are how many plays and leaves were acknowledged, and of how many the outcome is unknown.
func (l *ledger) totals() (acknowledged, unknown int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged, l.unknown
}

// expectation is what the ledger implies for one viewing, before the window is looked at.
type expectation struct {
	possible bool  // the viewer may be in the hash at all
	atLeast  int64 // the viewer was recorded then or later, and nothing has removed that; 0: nothing is certain
	atMost   int64 // … and no later; math.MaxInt64 when a play of unknown outcome may have come late
}

// expect draws the conclusions from one viewing's entries.
func expect(entries []*entry) expectation {
	var e expectation
	for i, play := range entries {
		if play.leave || play.outcome == refused {
			continue
		}
		if !surelyRemoved(entries, i) {
			e.possible = true
		}
		if play.outcome == unknown {
			e.atMost = math.MaxInt64
			continue
		}
		e.atMost = max(e.atMost, play.recordedAt)
		if !perhapsRemoved(entries, i) {
			e.atLeast = max(e.atLeast, play.atLeast)
		}
	}
	return e
}

// surelyRemoved reports whether a later leave has removed play i whenever it was carried out. One of unknown outcome
// may be carried out at any time, so that nothing is sure to come after it.
func surelyRemoved(entries []*entry, i int) bool {
	if entries[i].outcome == unknown {
		return false
	}
	for _, leave := range entries[i+1:] {
		if leave.leave && leave.outcome == acknowledged && leave.removes(newestOf(entries)) {
			return true
		}
	}
	return false
}

// newestOf is the latest time that a viewing's plays can have been stored with.
func newestOf(entries []*entry) (at int64) {
	for _, e := range entries {
		switch {
		case e.leave || e.outcome == refused:
		case e.outcome == unknown:
			return math.MaxInt64
		default:
			at = max(at, e.recordedAt)
		}
	}
	return at
}

// perhapsRemoved reports whether a leave may have removed acknowledged play i.
func perhapsRemoved(entries []*entry, i int) bool {
	for j, leave := range entries {
		late := j > i || leave.outcome == unknown
		if leave.leave && leave.outcome != refused && late && leave.removes(entries[i].atLeast) {
			return true
		}
	}
	return false
}

// removes reports whether the leave's guard lets it remove a viewer who was seen then.
func (e *entry) removes(seen int64) bool { return e.recordedAt == 0 || seen <= e.recordedAt }
