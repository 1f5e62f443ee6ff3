package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
)

// judge compares Redis with what the ledger implies.
type judge struct {
	prefix                   string
	window, keyTTL, countTTL time.Duration
	checks                   []check               // besides those of hashes, counts and TTLs
	known                    func(key string) bool // keys of these checks; nil: none
	breaking                 bool                  // connections to Redis break, so that it may carry out a write twice
}

// check looks at one kind of key and returns what differs from what it should be.
type check func(evidence) []difference

// evidence is what a judge has to go by.
type evidence struct {
	*judge
	snapshot
	entries  map[viewing][]*entry
	site     map[string][]*entry
	troubles []period
}

// difference is a fault that a judge found.
type difference struct {
	kind   kind
	key    string
	detail string
}

func (d difference) String() string { return fmt.Sprintf("%s: %s: %s", d.kind, d.key, d.detail) }

// kind says which promise was broken.
type kind string

const (
	lost       kind = "lost"       // an acknowledged play within its window is missing
	ghost      kind = "ghost"      // nobody can have recorded this viewer
	stale      kind = "stale"      // a viewer beyond the window outlived a complete pass
	stayed     kind = "stayed"     // an acknowledged leave did not remove the viewer
	wrongTime  kind = "time"       // a stored time that no play explains
	wrongCount kind = "count"      // a count that is not the hash's length
	wrongTTL   kind = "ttl"        // a key without a TTL, or with one that is too long or too short
	strange    kind = "strange"    // a key that should not be there, or is of another type
	unfinished kind = "unfinished" // no complete pass
)

// look reads Redis and judges.
func (j *judge) look(ctx context.Context, rdb redis.UniversalClient, l *ledger) ([]difference, error) {
	s, err := takeSnapshot(ctx, rdb, j.prefix+":*")
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	return j.decide(s, l), nil
}

// decide lists every difference. It is right when nothing is under way, and a complete pass has begun since.
func (j *judge) decide(s snapshot, l *ledger) []difference {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := evidence{j, s, l.entries, l.site, l.troubles}
	var found []difference
	for _, c := range append([]check{checkViewers, checkCounts, checkTTLs, checkNames}, j.checks...) {
		found = append(found, c(e)...)
	}
	slices.SortFunc(found, func(a, b difference) int { return strings.Compare(a.String(), b.String()) })
	return found
}

func (e evidence) names() keys.Keys { return keys.New(e.prefix) }

// lastPass is when the last pass began, by Redis's clock; zero when it was not complete, or there was none.
func (e evidence) lastPass() time.Time {
	fields := e.keys[e.names().LastPass()].fields
	finished, err := strconv.ParseInt(fields["finished_at"], 10, 64)
	started, err2 := strconv.ParseInt(fields["started_at"], 10, 64)
	if err != nil || err2 != nil || finished < started {
		return time.Time{}
	}
	return time.Unix(started, 0)
}

// hashes are the viewers of every video, by video.
func (e evidence) hashes() map[string]map[string]string {
	found := make(map[string]map[string]string)
	for name, v := range e.keys {
		if video, isCount, ok := e.names().Parse(name); ok && !isCount && v.kind == "hash" {
			found[video] = v.fields
		}
	}
	return found
}

// checkViewers holds the hashes against the ledger.
func checkViewers(e evidence) (found []difference) {
	pass := e.lastPass()
	if pass.IsZero() {
		found = append(found, difference{unfinished, e.names().LastPass(), "the last pass was not complete"})
	}
	hashes := e.hashes()
	for v, entries := range e.entries {
		seen, present := hashes[v.video][v.viewer]
		want := expect(entries)
		switch {
		case present:
			found = append(found, e.checkPresent(v, seen, want, pass)...)
		case want.atLeast >= e.now.Add(-e.window).Unix() && want.atLeast > 0:
			found = append(found, e.about(lost, v, "recorded at %d or later, at %d nobody is there", want.atLeast, e.now.Unix()))
		}
	}
	for video, viewers := range hashes {
		for viewer := range viewers {
			if _, known := e.entries[viewing{video, viewer}]; !known {
				found = append(found, e.about(ghost, viewing{video, viewer}, "never played"))
			}
		}
	}
	return found
}

func (e evidence) checkPresent(v viewing, seen string, want expectation, pass time.Time) (found []difference) {
	at, err := strconv.ParseInt(seen, 10, 64)
	if err != nil {
		return []difference{e.about(wrongTime, v, "%q is no time", seen)}
	}
	if !want.possible {
		k := ghost // no play of it can have been carried out
		if want.atMost > 0 {
			k = stayed
		}
		found = append(found, e.about(k, v, "seen at %d", at))
	}
	if at < want.atLeast || (at > want.atMost && want.possible) || at > e.now.Unix() {
		found = append(found, e.about(wrongTime, v, "seen at %d, want from %d to %d, now %d", at, want.atLeast, want.atMost, e.now.Unix()))
	}
	if !pass.IsZero() && at < pass.Add(-e.window).Unix() {
		found = append(found, e.about(stale, v, "seen at %d, the pass began at %d", at, pass.Unix()))
	}
	return found
}

func (e evidence) about(k kind, v viewing, format string, args ...any) difference {
	return difference{k, e.names().Online(v.video), fmt.Sprintf("viewer %q: ", v.viewer) + fmt.Sprintf(format, args...)}
}

// checkCounts holds the counts against the hashes' lengths.
func checkCounts(e evidence) (found []difference) {
	hashes := e.hashes()
	for video, viewers := range hashes {
		key := e.names().Count(video)
		if got := e.keys[key].text; got != strconv.Itoa(len(viewers)) {
			found = append(found, difference{wrongCount, key, fmt.Sprintf("%q, the hash has %d viewers", got, len(viewers))})
		}
	}
	for name, v := range e.keys {
		video, isCount, ok := e.names().Parse(name)
		if ok && isCount && hashes[video] == nil && v.text != "0" {
			found = append(found, difference{wrongCount, name, fmt.Sprintf("%q, there is no hash", v.text)})
		}
	}
	return found
}

// checkNames looks for keys that are nobody's.
func checkNames(e evidence) (found []difference) {
	for name, v := range e.keys {
		want := ""
		switch _, isCount, ok := e.names().Parse(name); {
		case name == e.names().LastPass(), ok && !isCount:
			want = "hash"
		case name == e.names().Lease(), ok:
			want = "string"
		case e.known != nil && e.known(name):
			continue
		}
		if v.kind != want {
			found = append(found, difference{strange, name, "a " + v.kind})
		}
	}
	return found
}

// count is how many of the differences are of a kind.
func count(found []difference, k kind) (n int) {
	for _, d := range found {
		if d.kind == k {
			n++
		}
	}
	return n
}
