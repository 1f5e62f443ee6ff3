package aggregator

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

// memory is what the worker keeps of videos from pass to pass. It only ever
// saves work: a video that is not in it is read, and whatever is lost from it
// costs one more reading.
//
// It is a table in buckets of eight, of 1.4 MiB for a small site and at the most
// 33 MiB, with room for 1.5 million videos; of a million, a few percent find no place. A full bucket drops the video that is
// due first, but none that the pass has dealt with: that could be counted twice.
// A video is known by 64 bits of a hash with a seed of this process:
// among a million videos two share them once in some ten million processes, and
// these two would then be read at each other's times.
//
// Beside it, it holds the suspects of large hashes, maxSuspects bytes at the most.
type memory struct {
	window time.Duration // that due was reckoned with
	seed   maphash.Seed

	mu          sync.Mutex // masters of a cluster are swept side by side
	fingerprint []uint64   // of the video's id; 0 is a free place
	due         []uint32   // Unix seconds: until then nobody in the hash can be stale
	renew       []uint32   // Unix seconds: from then on the count key is written again though nothing changed
	large       []bool     // the hash was too large to be read whole
	high        []uint32   // the largest count that the observer was told of
	pass        []uint8    // the pass that has dealt with the video last, by its number
	videos      int        // places taken
	full        bool       // a video found no place
	number      uint8      // of the latest pass, never 0
	clocks      map[string]reference
	suspects    map[uint64]suspects // by fingerprint
	held        int                 // bytes of them
}

const (
	bucketSize = 8
	smallTable = 65_536    // places
	largeTable = 1_572_864 // places
	smallSite  = smallTable / 4
)

// reference is a server's clock against ours at the same moment.
type reference struct {
	server time.Time
	ours   time.Time // monotonic
}

// at is the server's time at a moment of ours.
func (r reference) at(ours time.Time) time.Time { return r.server.Add(ours.Sub(r.ours)) }

// newMemory returns an empty memory for about that many videos.
func newMemory(videos int64) *memory {
	m := &memory{seed: maphash.MakeSeed(), suspects: make(map[uint64]suspects)}
	m.allocate(smallTable)
	if videos > smallSite {
		m.allocate(largeTable)
	}
	return m
}

func (m *memory) allocate(places int) {
	m.videos, m.full = 0, false
	m.fingerprint = make([]uint64, places)
	m.due = make([]uint32, places)
	m.renew = make([]uint32, places)
	m.large = make([]bool, places)
	m.high = make([]uint32, places)
	m.pass = make([]uint8, places)
}

// grow moves everything to the large table.
func (m *memory) grow() {
	fingerprints, due, renew, large, high, pass := m.fingerprint, m.due, m.renew, m.large, m.high, m.pass
	m.allocate(largeTable)
	for i, fingerprint := range fingerprints {
		if fingerprint != 0 {
			if j := m.place(fingerprint, 0); j != nowhere {
				m.due[j], m.renew[j], m.large[j], m.high[j], m.pass[j] = due[i], renew[i], large[i], high[i], pass[i]
			} else {
				m.list(fingerprint, suspects{})
			}
		}
	}
}

// begin returns the number of a new pass. Only here does the table grow, as a
// video that finds no place stays without one for the rest of a pass.
func (m *memory) begin() uint8 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.fingerprint) == smallTable && (m.full || m.videos > smallSite) {
		m.grow()
	}
	if m.number++; m.number == 0 {
		clear(m.pass) // or one of 255 passes ago would be taken for this one
		m.number = 1
	}
	return m.number
}

// nowhere is the place of a video whose bucket is full of videos that the pass
// has dealt with.
const nowhere = -1

// place finds the place of a fingerprint. A new one takes a free place, or that
// of the video in its bucket which is due first and that the pass has not dealt
// with yet.
func (m *memory) place(fingerprint uint64, pass uint8) int {
	bucket, _ := bits.Mul64(fingerprint, uint64(len(m.fingerprint)/bucketSize))
	first := int(bucket) * bucketSize
	victim := nowhere
	for i := first; i < first+bucketSize; i++ {
		if m.fingerprint[i] == fingerprint {
			return i
		}
		if m.fingerprint[i] == 0 {
			victim = i
			break
		}
		if m.pass[i] != pass && (victim == nowhere || m.due[i] < m.due[victim]) {
			victim = i
		}
	}
	if victim == nowhere {
		m.full = true
		return nowhere
	}
	if m.fingerprint[victim] == 0 {
		m.videos++
	}
	m.list(m.fingerprint[victim], suspects{})
	m.fingerprint[victim], m.due[victim], m.renew[victim] = fingerprint, 0, 0
	m.large[victim], m.high[victim], m.pass[victim] = false, 0, 0
	return victim
}

// sight is what the memory says when a key of a video comes by.
type sight struct {
	index       int    // of its place, as long as the fingerprint stands there; or nowhere
	fingerprint uint64 // of its id
	handled     bool   // this pass has dealt with the video already
	due         int64  // Unix seconds; 0: unknown
	renew       int64  // Unix seconds; 0: unknown
	large       bool   // the hash cannot be read whole, as far as known
	high        int64  // the largest count that the observer was told of, as far as known
	suspects    suspects
}

// see looks a video up and notes that the pass deals with it.
func (m *memory) see(videoID string, pass uint8) sight {
	m.mu.Lock()
	defer m.mu.Unlock()
	fingerprint := maphash.String(m.seed, videoID) | 1 // 0 is a free place
	i := m.place(fingerprint, pass)
	if i == nowhere {
		return sight{index: nowhere}
	}
	s := sight{
		index:       i,
		fingerprint: fingerprint,
		handled:     m.pass[i] == pass,
		due:         int64(m.due[i]),
		renew:       int64(m.renew[i]),
		large:       m.large[i],
		high:        int64(m.high[i]),
		suspects:    m.suspects[fingerprint],
	}
	m.pass[i] = pass
	return s
}

// keep notes when something must be done about the video, and when its count
// must be written, again; how it must be read, and its suspects and largest count in s.
func (m *memory) keep(s sight, due, renew int64, large bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.index != nowhere && m.fingerprint[s.index] == s.fingerprint {
		m.due[s.index], m.renew[s.index], m.large[s.index] = uint32(due), uint32(renew), large
		m.high[s.index] = uint32(s.high)
		m.list(s.fingerprint, s.suspects)
	}
}

// tellAnew forgets which counts the observer was told of.
func (m *memory) tellAnew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.high)
}

// list replaces a video's suspects.
func (m *memory) list(fingerprint uint64, s suspects) {
	m.held += s.size - m.suspects[fingerprint].size
	if s.size > 0 {
		m.suspects[fingerprint] = s
	} else {
		delete(m.suspects, fingerprint)
	}
}

// room is how many more bytes of suspects may be held.
func (m *memory) room() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maxSuspects - m.held
}

// forget makes every video unknown.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.videos, m.full, m.held = 0, false, 0
	clear(m.suspects)
	clear(m.fingerprint)
	clear(m.due)
	clear(m.renew)
	clear(m.large)
	clear(m.high)
	clear(m.pass)
}

// slack is how far a server's clock may fall behind ours between two passes and
// still count as going on.
const slack = 2 * time.Second

// check compares the window, and the servers' clocks by their identities, with
// those of the last pass. Another window, a clock that stepped back, or a server that is new, as after a
// failover, makes the memory forget: what it holds was reckoned otherwise, and
// from other times than may be in the hashes now.
func (m *memory) check(window time.Duration, clocks map[string]reference) {
	m.mu.Lock()
	last, before := m.clocks, m.window
	m.clocks, m.window = clocks, window
	m.mu.Unlock()
	if window != before {
		m.forget()
		return
	}
	for server, now := range clocks {
		before, known := last[server]
		steppedBack := known && now.server.Sub(before.server) < now.ours.Sub(before.ours)-slack
		if steppedBack || (!known && len(last) > 0) {
			m.forget()
			return
		}
	}
}
