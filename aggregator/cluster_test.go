package aggregator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
)

func TestPassSweepsEveryMasterOfACluster(t *testing.T) {
	t.Parallel()
	e := newClusterEnv(t, redistest.SharedCluster(t))
	want := make(map[string]string)
	for i := range 300 {
		video := fmt.Sprint(i)
		e.seed(video, map[string]int64{"a": 0, "b": 0, "gone": 700})
		want[video] = "2"
	}
	must(t, e.raw.Set(t.Context(), e.k.Count("nobody"), 5, 0).Err())
	want["nobody"] = "0"
	must(t, e.raw.RPush(t.Context(), e.k.Count("listed"), "x").Err())

	sum := e.pass()

	if sum.Videos != 300 || sum.Viewers != 600 || sum.Evicted != 300 || sum.Healed != 300 || sum.Foreign != 1 {
		t.Errorf("got %+v, want 300 videos with 600 viewers, 300 evicted, 300 TTLs healed, a foreign key", sum)
	}
	e.wantCounts(want)
	for i := range 300 {
		e.wantViewers(fmt.Sprint(i), "a", "b")
	}
	if sum := e.pass(); sum.Videos != 300 || sum.Viewers != 600 || sum.Evicted != 0 || sum.Healed != 0 {
		t.Errorf("the next pass: got %+v, want 300 videos with 600 viewers and nothing to do", sum)
	}
}

// No master's scan goes on before all have begun.
func TestPassSweepsMastersSideBySide(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	e := newClusterEnv(t, c)
	e.seed("10001", map[string]int64{"a": 0})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	begun := make(map[string]bool)
	all := make(chan struct{})
	e.intercept(hook{atOnce: true, before: func(hookCtx context.Context, cmds []redis.Cmder) {
		if cmds[0].Name() != "scan" {
			return
		}
		mu.Lock()
		if begun[nodeOf(hookCtx)] = true; len(begun) == len(c.Masters()) {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		mu.Unlock()
		select {
		case <-all:
		case <-ctx.Done():
		}
	}})
	if _, err := e.agg.Pass(ctx); err != nil {
		t.Errorf("%d of %d scans had begun: %v", len(begun), len(c.Masters()), err)
	}
	e.wantCounts(map[string]string{"10001": "1"})
}

// A panic in a sweep's goroutine would end the process.
func TestPassTurnsAPanicIntoAnError(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedVideos(60, map[string]int64{"a": 0})
		e.pass()
		panicked := false
		e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
			if cmds[0].Name() == "scan" && !panicked {
				panicked = true
				panic("on purpose")
			}
		}})

		sum, err := e.agg.Pass(t.Context())

		if err == nil || !strings.Contains(err.Error(), "panic: on purpose") || !strings.Contains(err.Error(), "cluster_test.go:") {
			t.Errorf("error: got %v, want the panic with its stack", err)
		}
		if sum.Errors != 1 {
			t.Errorf("errors: got %d, want 1", sum.Errors)
		}
		if sum := e.pass(); sum.Videos != 60 {
			t.Errorf("videos of the next pass: got %d, want 60", sum.Videos)
		}
	})
}

// The masters' clocks may differ: a sweep reads hashes that another master
// keeps, with times by that one's clock.
func TestPassEvictsNobodyForAMastersClock(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	for _, s := range c.Masters() {
		for _, off := range []time.Duration{-5 * time.Minute, 20 * time.Minute} {
			t.Run(s.Addr()+" by "+off.String(), func(t *testing.T) {
				t.Parallel()
				e := newClusterEnv(t, c)
				e.intercept(hook{after: func(ctx context.Context, cmds []redis.Cmder) {
					if now, ok := cmds[0].(*redis.TimeCmd); ok && nodeOf(ctx) == s.Addr() {
						now.SetVal(now.Val().Add(off))
					}
				}})
				e.seedVideos(60, map[string]int64{"a": 0, "b": 0})
				for range 2 {
					if sum := e.pass(); sum.Viewers != 120 || sum.Evicted != 0 {
						t.Errorf("got %d viewers, %d evicted; want 120, 0", sum.Viewers, sum.Evicted)
					}
				}
			})
		}
	}
}
