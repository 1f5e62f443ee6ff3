package api

import (
	"net/http"
	"net/netip"
	"sync"
)

// Bodies of batches that are read at a time take no more than maxReading bytes,
// those of one client address no more than an eighth of it: whoever sends bodies
// and never ends them fills no memory, and keeps few others out.
const (
	maxReading       = 64 << 20
	maxClientReading = maxReading / 8
)

var errTooMuchReading = unavailable("too many batches are being read, try again")

// reading counts the bytes of bodies that are being read. It is safe for
// concurrent use.
type reading struct {
	mu       sync.Mutex
	all      int64
	byClient map[netip.Addr]int64
}

// begin reports whether a body of that many bytes may be read. If so, end must
// be called when it has been dealt with.
func (b *reading) begin(client netip.Addr, size int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all+size > maxReading || b.byClient[client]+size > maxClientReading {
		return false
	}
	b.all += size
	b.byClient[client] += size
	return true
}

func (b *reading) end(client netip.Addr, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= size
	if b.byClient[client] -= size; b.byClient[client] == 0 {
		delete(b.byClient, client)
	}
}

// bodySize is the most bytes that the request's body can have to be accepted.
func bodySize(r *http.Request, limit int64) int64 {
	if r.ContentLength < 0 || r.ContentLength > limit {
		return limit
	}
	return r.ContentLength
}
