package aggregator

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Whom a page of a large hash showed to be stale is evicted beside the reading
// of the next page, also where the script is missing by then.
func TestLargeHashIsEvictedPageByPage(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		const pages = 6_000/pageSize + 1
		e.seedMany("10001", 5_000, 0)
		e.seedMany("10001", 600, 700)
		e.seedValues("10001", map[string]string{"text": "soon", "milliseconds": "1700000000000"})
		_, single := e.agg.rdb.(*redis.Client)
		trips := 0
		e.intercept(hook{before: func(ctx context.Context, cmds []redis.Cmder) {
			evicts := anyNames(cmds, "evalsha", e.k.Online("10001"))
			reads := anyNames(cmds, "hscan", e.k.Online("10001"))
			if evicts || reads {
				trips++
			}
			if evicts && trips%2 == 0 {
				must(t, e.raw.ScriptFlush(ctx).Err())
			}
		}})
		sum := e.pass()
		if sum.Evicted != 602 || sum.Invalid != 2 || sum.Viewers != 5_000 {
			t.Errorf("evicted %d viewers, %d of them invalid, and left %d; want 602, 2 and 5,000", sum.Evicted, sum.Invalid, sum.Viewers)
		}
		e.wantCounts(map[string]string{"10001": "5000"})
		if n := e.raw.HLen(t.Context(), e.k.Online("10001")).Val(); n != 5_000 {
			t.Errorf("the hash has %d viewers, want 5,000", n)
		}
		if single && trips > pages+1 {
			t.Errorf("round trips: got %d, want one for each of some %d pages and one more", trips, pages)
		}
	})
}
