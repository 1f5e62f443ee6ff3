package modeltest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// A player says four times per window that it still plays. Not all of it
// arrives, and nothing else is heard of the viewer, who counts as one all along
// and is gone a window after the last time.
func TestAViewerWhoBeatsIsCountedThroughout(t *testing.T) {
	t.Parallel()
	const (
		seconds  = int64(window / time.Second)
		beat     = seconds / 4
		interval = 30
		beats    = 24 // an hour
	)
	for name, arrives := range map[string]func(n int64) bool{
		"none lost":         func(int64) bool { return true },
		"one in three lost": func(n int64) bool { return n%3 != 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &virtualClock{redis: miniredis.RunT(t), at: 1_700_000_000}
			c.redis.SetTime(time.Unix(c.at, 0))
			w := newWorld(t, c.redis.Addr(), c)
			pass := func(want int) {
				t.Helper()
				_, err := w.agg.Pass(t.Context())
				must(t, err)
				w.wantCount("10001", want)
				c.step(w, nil, interval)
			}
			var last int64
			for at := int64(0); at < beats*beat; at += interval {
				if n := at / beat; at%beat == 0 && arrives(n) {
					_, err := w.rec.Play(t.Context(), "10001", "u1")
					must(t, err)
					last = c.at
				}
				pass(1)
			}
			for c.at <= last+seconds {
				pass(1)
			}
			pass(0)
		})
	}
}
