package chaos

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// ttlSlack is what whole seconds take from a TTL: those of the time in an answer, and of the TTL itself.
const ttlSlack = time.Second

// checkTTLs looks for keys that never expire, or later or sooner than they should. Whoever plays renews a hash; the last
// pass, a hash or a count that would not last.
func checkTTLs(e evidence) (found []difference) {
	least := e.leastTTLs()
	for name, v := range e.keys {
		most := e.keyTTL
		if _, isCount, ok := e.names().Parse(name); ok && isCount {
			most = e.countTTL * 102 / 100 // with its jitter
		}
		if e.known != nil && e.known(name) {
			most = math.MaxInt64
		}
		if v.ttl == noTTL || v.ttl < least[name] || v.ttl > most {
			found = append(found, difference{wrongTTL, name, fmt.Sprintf("%v, want from %v to %v", v.ttl, least[name], most)})
		}
	}
	return found
}

// leastTTLs are how long keys live at least: a hash for key_ttl after the last play that was acknowledged, the last pass
// for as long after its end, and a count of somebody as long as the last pass has promised, which is never so short that
// a worker that takes over could find it gone.
func (e evidence) leastTTLs() map[string]time.Duration {
	least := make(map[string]time.Duration)
	for v, entries := range e.entries {
		key := e.names().Online(v.video)
		for _, play := range entries {
			if !play.leave && play.outcome == acknowledged {
				least[key] = max(least[key], e.left(e.keyTTL, play.atLeast))
			}
		}
	}
	pass := e.lastPass()
	if pass.IsZero() {
		return least
	}
	fields := e.keys[e.names().LastPass()].fields
	least[e.names().LastPass()] = e.left(e.keyTTL, number(fields["finished_at"]))
	promised := max(e.left(0, number(fields["counts_until"])), e.left(e.countTTL/4-ttlSlack, pass.Unix()))
	for video := range e.hashes() {
		least[e.names().Count(video)] = promised
	}
	return least
}

// left is what is left of a TTL that was set at some time or later.
func (e evidence) left(ttl time.Duration, from int64) time.Duration {
	return time.Unix(from, 0).Add(ttl).Sub(e.now) - ttlSlack
}

// number is a field's, 0 if it is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
