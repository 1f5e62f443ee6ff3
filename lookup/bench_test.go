package lookup_test

import (
	"testing"
	"time"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/lookup"
)

// BenchmarkViewers is a lookup that memory answers.
func BenchmarkViewers(b *testing.B) {
	rdb, err := redisclient.New(redisclient.Options{Mode: redisclient.Single, Addrs: []string{redistest.Shared(b).Addr()}, Timeout: patience})
	if err != nil {
		b.Fatalf("redisclient.New: %v", err)
	}
	b.Cleanup(func() { _ = rdb.Close() })
	l, err := lookup.New(rdb, lookup.Options{Keys: keys.New("bench"), CountTTL: countTTL, Cache: time.Minute, Timeout: patience})
	if err != nil {
		b.Fatalf("lookup.New: %v", err)
	}
	b.Cleanup(l.Close)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := l.Viewers(b.Context(), "10001"); err != nil {
			b.Fatalf("Viewers: %v", err)
		}
	}
}
