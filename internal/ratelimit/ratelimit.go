// Package ratelimit bounds what one client address may do: a token bucket for
// each address, in this process's memory. Several processes know nothing of each
// other, so together they let pass as many times what one does.
package ratelimit

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

// Options configure a Limiter.
type Options struct {
	PerSecond int // tokens that a bucket gains; 0: no limit
	Burst     int // tokens that a full bucket holds, at least 1; a new one is full
	Addresses int // buckets kept; 0: 100,000, which take some 20 MB
}

// Limiter has a bucket for each address. It is safe for concurrent use.
type Limiter struct {
	o       Options
	buckets *otter.Cache[netip.Addr, *rate.Limiter] // nil: no limit
}

// New returns a Limiter. Call Close when done with it.
//
// A bucket is forgotten when it must be full again, which changes nothing, and
// when there are more addresses than it keeps: those that ask least go first.
func New(o Options) (*Limiter, error) {
	if o.PerSecond == 0 {
		return &Limiter{}, nil
	}
	if o.Addresses == 0 {
		o.Addresses = 100_000
	}
	refill := time.Duration(float64(o.Burst) / float64(o.PerSecond) * float64(time.Second))
	buckets, err := otter.New(&otter.Options[netip.Addr, *rate.Limiter]{
		MaximumSize:      o.Addresses,
		ExpiryCalculator: otter.ExpiryAccessing[netip.Addr, *rate.Limiter](refill + time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("ratelimit: table: %w", err)
	}
	return &Limiter{o: o, buckets: buckets}, nil
}

// Close stops the table's housekeeping.
func (l *Limiter) Close() {
	if l.buckets != nil {
		l.buckets.StopAllGoroutines()
	}
}

// Burst is how many tokens can be taken at once.
func (l *Limiter) Burst() int {
	if l.buckets == nil {
		return math.MaxInt
	}
	return l.o.Burst
}

// Take takes n tokens, at most Burst, out of the address's bucket and returns 0.
// When there are fewer it takes none and returns how long until there are n.
func (l *Limiter) Take(addr netip.Addr, n int) (wait time.Duration) {
	if l.buckets == nil {
		return 0
	}
	b, now := l.bucket(addr), time.Now()
	if b.AllowN(now, n) {
		return 0
	}
	return l.wait(b, now, n)
}

// wait is in whole milliseconds, and at least one. A reservation would tell it
// too, but giving one back while others are made loses tokens.
func (l *Limiter) wait(b *rate.Limiter, now time.Time, n int) time.Duration {
	missing := float64(n) - b.TokensAt(now)
	wait := time.Duration(missing / float64(l.o.PerSecond) * float64(time.Second))
	return max(wait.Round(time.Millisecond), time.Millisecond)
}

func (l *Limiter) bucket(addr netip.Addr) *rate.Limiter {
	client := Client(addr)
	if b, ok := l.buckets.GetIfPresent(client); ok {
		return b
	}
	b, _ := l.buckets.ComputeIfAbsent(client, func() (*rate.Limiter, bool) {
		return rate.NewLimiter(rate.Limit(l.o.PerSecond), l.o.Burst), false
	})
	return b
}

// Client is the address that stands for all that one client can easily have: of
// IPv6 the first of its /64, the smallest network that providers hand out. It has
// no zone, and the zero Addr stays what it is.
func Client(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	network, _ := addr.Prefix(64) // fails only for more bits than an address has
	return network.Addr()
}
