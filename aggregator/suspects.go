package aggregator

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"headcount/internal/keys"
)

// suspects are the viewers of one video who go stale before a moment unless
// they are seen again. Times only grow, so nobody else of the hash can: until
// then it need not be read, only these be evicted when their time has come, by
// compare-and-delete with the value that was read.
//
// In a popular video somebody goes stale between any two passes. Nearly all who
// are watching have been seen since, so the suspects are few, and a hash of many
// viewers is read every half window instead of in every pass.
type suspects struct {
	until  int64  // Unix seconds
	packed []byte // each: last seen (4 bytes), length of the id (2), id; the earliest first
	size   int    // bytes that are held, those of suspects who are gone included
}

// maxSuspects bounds what is held of suspects, in bytes, and a quarter of it
// what one video may take; an id of 36 bytes takes 42. Videos beyond are read
// whenever somebody in them can be stale.
const maxSuspects = 4 << 20

const suspectHead = 4 + 2 // bytes of a packed suspect before the id

// suspect is a viewer whose value was read as seen, in decimal.
type suspect struct {
	seen   uint32
	viewer string
}

// pack makes a list of suspects that can be kept.
func pack(list []suspect, until int64) suspects {
	slices.SortFunc(list, func(a, b suspect) int { return cmp.Compare(a.seen, b.seen) })
	size := 0
	for _, v := range list {
		size += suspectHead + len(v.viewer)
	}
	packed := make([]byte, 0, size)
	for _, v := range list {
		packed = binary.BigEndian.AppendUint32(packed, v.seen)
		packed = binary.BigEndian.AppendUint16(packed, uint16(len(v.viewer)))
		packed = append(packed, v.viewer...)
	}
	return suspects{until: until, packed: packed, size: size}
}

// next is when the first of them goes stale or, without any, when the hash must
// be read: Unix seconds.
func (s suspects) next(window time.Duration) int64 {
	if len(s.packed) == 0 {
		return s.until
	}
	return int64(binary.BigEndian.Uint32(s.packed)) + int64(window/time.Second)
}

// split cuts the list at a time: those who were seen before it, and the rest.
func (s suspects) split(oldest int64) (stale candidates, rest suspects) {
	rest = s
	for len(rest.packed) > 0 {
		seen := int64(binary.BigEndian.Uint32(rest.packed))
		if seen >= oldest {
			break
		}
		end := suspectHead + int(binary.BigEndian.Uint16(rest.packed[4:]))
		stale.add(string(rest.packed[suspectHead:end]), strconv.FormatInt(seen, 10))
		rest.packed = rest.packed[end:]
	}
	return stale, rest
}

// rereadAt is when a hash must be read again although all are known who go stale
// before, Unix seconds: half a window from now, or when somebody is stale whom a
// slow clock writes into the hash from now on.
func (s *sweep) rereadAt() int64 {
	half, slow := s.now.Add(s.window/2), s.now.Add(s.window-behind)
	return min(half.Unix(), slow.Unix())
}

// suspect notes a viewer of a large hash who may be stale before it is to be
// read again. Where that takes too much, or a value is not spelled as split
// spells it, the video goes without.
func (s *sweep) suspect(r *reading, viewer, value string, at int64) {
	if s.memory == nil || !r.large || r.unlisted || at+int64(s.window/time.Second) >= s.rereadAt() {
		return
	}
	size := suspectHead + len(viewer)
	r.listSize += size
	s.listed += size
	if len(viewer) > keys.MaxIDBytes || value != strconv.FormatInt(at, 10) || r.listSize > maxSuspects/4 || s.listed > s.room {
		s.listed -= r.listSize
		r.unlisted, r.list = true, nil
		return
	}
	r.list = append(r.list, suspect{seen: uint32(at), viewer: viewer})
}
