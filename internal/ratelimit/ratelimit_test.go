package ratelimit_test

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"headcount/internal/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	alice = netip.MustParseAddr("192.0.2.1")
	bob   = netip.MustParseAddr("192.0.2.2")
)

// inBubble runs test with a Limiter whose time is the test's to move.
func inBubble(t *testing.T, o ratelimit.Options, test func(*testing.T, *ratelimit.Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, err := ratelimit.New(o)
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		defer l.Close()
		test(t, l)
	})
}

func wantTake(t *testing.T, l *ratelimit.Limiter, addr netip.Addr, n int, want time.Duration) {
	t.Helper()
	if got := l.Take(addr, n); got != want {
		t.Errorf("Take(%s, %d) = %v, want %v", addr, n, got, want)
	}
}

// after moves the time.
func after(d time.Duration) { <-time.After(d) }

func TestBurstThenRate(t *testing.T) {
	t.Parallel()
	inBubble(t, ratelimit.Options{PerSecond: 10, Burst: 30}, func(t *testing.T, l *ratelimit.Limiter) {
		for range 30 {
			wantTake(t, l, alice, 1, 0)
		}
		wantTake(t, l, alice, 1, 100*time.Millisecond)
		wantTake(t, l, alice, 1, 100*time.Millisecond) // to be refused costs nothing
		after(99 * time.Millisecond)
		wantTake(t, l, alice, 1, time.Millisecond)
		after(time.Millisecond)
		wantTake(t, l, alice, 1, 0)
		after(time.Hour)
		wantTake(t, l, alice, 30, 0) // and no more than the burst
		wantTake(t, l, alice, 1, 100*time.Millisecond)
	})
}

func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, ratelimit.Options{PerSecond: 10, Burst: 30}, func(t *testing.T, l *ratelimit.Limiter) {
		wantTake(t, l, alice, 25, 0)
		wantTake(t, l, alice, 6, 100*time.Millisecond)
		wantTake(t, l, alice, 30, 2500*time.Millisecond)
		wantTake(t, l, alice, 5, 0)
		wantTake(t, l, alice, 0, 0)
	})
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, ratelimit.Options{}, func(t *testing.T, l *ratelimit.Limiter) {
		for range 1000 {
			wantTake(t, l, alice, l.Burst(), 0)
		}
	})
}

func TestAddressesDoNotAffectEachOther(t *testing.T) {
	t.Parallel()
	inBubble(t, ratelimit.Options{PerSecond: 1, Burst: 1}, func(t *testing.T, l *ratelimit.Limiter) {
		wantTake(t, l, alice, 1, 0)
		wantTake(t, l, alice, 1, time.Second)
		wantTake(t, l, bob, 1, 0)
	})
}

// A bucket is forgotten, or the table would grow for ever, but not before it is
// full: that would be a way round the limit.
func TestABucketIsForgottenWhenFull(t *testing.T) {
	t.Parallel()
	inBubble(t, ratelimit.Options{PerSecond: 1, Burst: 100}, func(t *testing.T, l *ratelimit.Limiter) {
		wantTake(t, l, alice, 100, 0)
		after(99 * time.Second)
		wantTake(t, l, alice, 100, time.Second)
		if got := l.Known(); got != 1 {
			t.Errorf("%d addresses known, want 1", got)
		}
		after(10 * time.Minute)
		if got := l.Known(); got != 0 {
			t.Errorf("%d addresses known after ten minutes, want 0", got)
		}
	})
}

func TestTheTableIsBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, ratelimit.Options{PerSecond: 1, Burst: 1, Addresses: 100}, func(t *testing.T, l *ratelimit.Limiter) {
		addr := alice
		for range 10_000 {
			addr = addr.Next()
			l.Take(addr, 1)
		}
		if got := l.Known(); got > 100 {
			t.Errorf("%d addresses known, want 100 at most", got)
		}
	})
}

func TestConcurrentTakes(t *testing.T) {
	t.Parallel()
	const burst = 1000
	inBubble(t, ratelimit.Options{PerSecond: 1, Burst: burst}, func(t *testing.T, l *ratelimit.Limiter) {
		var taken atomic.Int64
		var clients sync.WaitGroup
		for range 20 {
			clients.Go(func() {
				for range burst {
					if l.Take(alice, 1) == 0 {
						taken.Add(1)
					}
				}
			})
		}
		clients.Wait()
		if got := taken.Load(); got != burst {
			t.Errorf("%d taken at once, want %d", got, burst)
		}
		after(time.Second)
		wantTake(t, l, alice, 1, 0) // what was refused took nothing
	})
}

func TestClient(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1":                  "192.0.2.1",
		"::ffff:192.0.2.1":           "192.0.2.1",
		"2001:db8:1:2::":             "2001:db8:1:2::",
		"2001:db8:1:2:3:4:5:6":       "2001:db8:1:2::",
		"2001:db8:1:3:ffff::1":       "2001:db8:1:3::",
		"fe80::1%eth0":               "fe80::",
		"::1":                        "::",
		"2001:db8:ffff:ffff:ffff::1": "2001:db8:ffff:ffff::",
	} {
		if got := ratelimit.Client(netip.MustParseAddr(addr)); got.String() != want {
			t.Errorf("Client(%s) = %s, want %s", addr, got, want)
		}
	}
	if got := ratelimit.Client(netip.Addr{}); got.IsValid() {
		t.Errorf("Client of no address = %s, want none", got)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, addresses := range []int{1, 50_000} {
		b.Run(fmt.Sprintf("%d addresses", addresses), func(b *testing.B) {
			l, err := ratelimit.New(ratelimit.Options{PerSecond: 500, Burst: 2000})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			addrs := []netip.Addr{alice}
			for len(addrs) < addresses {
				addrs = append(addrs, addrs[len(addrs)-1].Next())
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.Take(addrs[i%addresses], 1)
			}
		})
	}
}
