package aggregator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

const faultVideos = 1000

// seedFault seeds many videos of two viewers, counts them, and adds a viewer to
// each, so that a count tells when it was made.
func (e *env) seedFault() {
	e.t.Helper()
	e.seedVideos(faultVideos, map[string]int64{"a": 0, "b": 0})
	if sum := e.pass(); sum.Videos != faultVideos || sum.Viewers != 2*faultVideos {
		e.t.Fatalf("got %+v, want %d videos with 2 viewers each", sum, faultVideos)
	}
	e.seedVideos(faultVideos, map[string]int64{"c": 0})
}

// wantFaultCounts asserts the count of every video of seedFault by where its keys are.
func (e *env) wantFaultCounts(want func(online, count string) string) {
	e.t.Helper()
	counts := make(map[string]string)
	for i := range faultVideos {
		video := fmt.Sprint(i)
		if w := want(e.k.Online(video), e.k.Count(video)); w != "" {
			counts[video] = w
		}
	}
	e.wantCounts(counts)
}

// partialPass is what one returned.
type partialPass struct {
	Summary
	err error
}

// partial makes a pass that must be partial, and in time.
func (e *env) partial(most time.Duration) partialPass {
	e.t.Helper()
	finished := e.raw.HGet(e.t.Context(), e.k.LastPass(), "finished_at").Val()
	began := time.Now()
	sum, err := e.agg.Pass(e.t.Context())
	if err == nil || sum.Errors == 0 {
		e.t.Errorf("got %+v, %v; want errors in both", sum, err)
	}
	if took := time.Since(began); took > most {
		e.t.Errorf("the pass took %v, want at most %v", took, most)
	}
	if after := e.raw.HGet(e.t.Context(), e.k.LastPass(), "finished_at").Val(); after != finished {
		e.t.Errorf("finished_at after a partial pass: got %s, want %s as of the last complete one", after, finished)
	}
	return partialPass{sum, err}
}

// completes makes passes until one is complete, without anything restarted.
func (e *env) completes() Summary {
	e.t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		sum, err := e.agg.Pass(e.t.Context())
		if err == nil {
			return sum
		}
		select {
		case <-limit.C:
			e.t.Fatalf("no pass has become complete: %v", err)
		case <-tick.C:
		}
	}
}

// onceReading calls f when a pass is about to read its first hashes.
func (e *env) onceReading(f func()) {
	f = once(f)
	e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
		if name := cmds[0].Name(); name == "hrandfield" || name == "hlen" {
			f()
		}
	}})
}

// A master without a replica dies or hangs in the middle of a pass. One that
// hangs is not waited for with every batch of the pass.
func TestPassWithoutOneMaster(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		end, back func(*redistest.Server, testing.TB)
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"hung", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no", "--appendonly", "yes", "--appendfsync", "always")
			const timeout = 300 * time.Millisecond
			e := newEnvOn(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs(), Timeout: timeout})
			e.seedFault()
			dead := c.Other(c.Owner(t, c.Slot(t, e.k.LastPass())))
			lost := make(map[string]bool) // keys
			names, err := dead.Client().Keys(t.Context(), e.k.OnlinePattern()).Result()
			must(t, err)
			for _, key := range names {
				lost[key] = true
			}
			reached := func(online, count string) string {
				switch {
				case lost[count]:
					return "" // not to be seen now
				case lost[online]:
					return "2"
				}
				return "3"
			}
			e.newWorker()
			e.onceReading(func() { tc.end(dead, t) })

			const most = 40 * timeout
			e.partial(most)
			e.wantFaultCounts(reached)
			if sum := e.partial(most); sum.Videos == 0 || sum.Videos == faultVideos {
				t.Errorf("videos counted without one master: got %d of %d, want some", sum.Videos, faultVideos)
			}
			e.wantFaultCounts(reached)

			tc.back(dead, t)
			if sum := e.completes(); sum.Videos != faultVideos || sum.Viewers != 3*faultVideos {
				t.Errorf("with the master back: got %+v, want %d videos with 3 viewers each", sum, faultVideos)
			}
			e.wantEach(faultVideos, "3")
		})
	}
}

// A master dies and its replica takes over. Until then the others refuse their
// keys as well (CLUSTERDOWN), since not all slots are served.
func TestPassWhenAReplicaTakesOver(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	e := newClusterEnv(t, c)
	e.seedFault()
	for _, s := range c.Masters() { // every write is with the replica, too
		replicated(t, s.Client())
	}
	dead := c.Masters()[1]
	e.onceReading(func() {
		dead.Kill(t)
	})
	if sum, err := e.agg.Pass(t.Context()); err == nil || sum.Errors == 0 {
		t.Errorf("got %+v, %v; want errors in both", sum, err)
	}
	for i := range faultVideos { // as far as they can be read at all
		got, err := e.raw.Get(t.Context(), e.k.Count(fmt.Sprint(i))).Result()
		if got != "2" && got != "3" && (err == nil || errors.Is(err, redis.Nil)) {
			t.Errorf("count of %d while a master is missing: got %q, %v; want 2 or 3", i, got, err)
		}
	}
	if sum := e.completes(); sum.Videos != faultVideos || sum.Viewers != 3*faultVideos {
		t.Errorf("after the failover: got %+v, want %d videos with 3 viewers each", sum, faultVideos)
	}
	e.wantEach(faultVideos, "3")
}
