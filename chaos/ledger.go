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
	outcome outcome

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
	newest       int64                // the latest time in any answer so far
	acknowledged int
	unknown      int
}

func newLedger() *ledger { return &ledger{entries: make(map[viewing][]*entry)} }

// send notes plays or leaves that are about to be sent together. Until settle, their outcome is unknown.
func (l *ledger) send(guard int64, leave bool, viewings ...viewing) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := make([]*entry, len(viewings))
	for i, v := range viewings {
		sent[i] = &entry{leave: leave, recordedAt: guard, atLeast: l.newest}
		l.entries[v] = append(l.entries[v], sent[i])
	}
	l.unknown += len(sent)
	return sent
}

// settle notes how one ended. at is the time in a play's answer; alone says that the request had no other play.
func (l *ledger) settle(e *entry, o outcome, at int64, alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.outcome, e.settled = o, time.Now()
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
	for _, entries := range l.entries {
		for _, e := range entries {
			if e.outcome == acknowledged && !e.settled.Before(from) && !e.settled.After(to) {
				e.outcome = unknown
				doubted++
			}
		}
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
