package recorder_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/recorder"
)

// BenchmarkPlay is a play alone, and among many others. Redis runs beside it.
func BenchmarkPlay(b *testing.B) {
	s := redistest.Shared(b)
	rdb, err := redisclient.New(redisclient.Options{Mode: redisclient.Single, Addrs: []string{s.Addr()}, Timeout: patience})
	if err != nil {
		b.Fatalf("redisclient.New: %v", err)
	}
	b.Cleanup(func() { _ = rdb.Close() })
	r := recorder.New(rdb, recorder.Options{Keys: keys.New("bench"), KeyTTL: keyTTL, CountTTL: countTTL, Timeout: patience})
	play := func(b *testing.B, i int64) {
		if _, err := r.Play(b.Context(), fmt.Sprintf("v%d", i%20), strconv.FormatInt(i%100_000, 10)); err != nil {
			b.Errorf("Play: %v", err)
		}
	}
	var n atomic.Int64
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			play(b, n.Add(1))
		}
	})
	b.Run("among 256", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(128)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				play(b, n.Add(1))
			}
		})
	})
}
