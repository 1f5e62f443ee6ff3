package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestPassWhile takes the right to write away after any number of batches: no more are written, and what is missing
// is made up for by the next pass.
func TestPassWhile(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		const videos = 3 * maxOpen
		for i := range videos {
			e.seed(fmt.Sprint(i), map[string]int64{"u1": 0, "gone": 3600})
		}
		var written, batches atomic.Int64
		e.intercept(hook{atOnce: true, before: func(ctx context.Context, cmds []redis.Cmder) {
			if ctx.Err() == nil && slices.ContainsFunc(cmds, func(c redis.Cmder) bool {
				return slices.Contains([]string{"evalsha", "eval", "set", "hset", "expire"}, c.Name())
			}) {
				written.Add(1)
			}
		}})
		for most := range int64(4) {
			written.Store(0)
			batches.Store(0)
			sum, err := e.agg.PassWhile(t.Context(), func() bool { return batches.Add(1) <= most })
			if !errors.Is(err, ErrCutShort) || !errors.Is(err, errMayNotWrite) || sum.Errors != 0 {
				t.Errorf("got %d errors and error %v, want none, and ErrCutShort with its cause", sum.Errors, err)
			}
			if n := written.Load(); n > 2*most { // a script that Redis does not know is sent twice
				t.Errorf("%d batches were written, %d were allowed", n, most)
			}
		}
		if e.raw.Exists(t.Context(), e.k.LastPass()).Val() != 0 {
			t.Error("a pass that was cut short wrote down that it was made")
		}
		sum, err := e.agg.Pass(t.Context())
		if err != nil || sum.Videos != videos || sum.Viewers != videos {
			t.Errorf("the next pass found %d videos and %d viewers, %v; want %d of each", sum.Videos, sum.Viewers, err, videos)
		}
	})
}
