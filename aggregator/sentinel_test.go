package aggregator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func newSentinelEnv(t *testing.T, s *redistest.Sentinel) *env {
	t.Helper()
	return newEnvOn(t, redisclient.Options{Mode: redisclient.Sentinel, Addrs: s.Addrs(), MasterName: s.MasterName, Timeout: time.Second})
}

// The master is killed in the middle of a pass. Once the replica has taken over,
// passes are right with nothing restarted, and nothing is taken from memory: the
// replica's hashes need not be those that were read.
func TestPassWhenSentinelReplacesTheMaster(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	e := newSentinelEnv(t, s)
	e.seedFault()
	e.seed("10001", map[string]int64{"a": 0, "gone": 700})
	e.pass()
	e.wantCounts(map[string]string{"10001": "1"})
	e.wantViewers("10001", "a")
	e.seed("10001", map[string]int64{"stale": 700}) // nobody is due in this hash, so it would not be read
	if sum := e.pass(); sum.Viewers != 3*faultVideos+2 || sum.Evicted != 0 {
		t.Errorf("before: got %d viewers, %d evicted; want %d, 0", sum.Viewers, sum.Evicted, 3*faultVideos+2)
	}
	e.seedVideos(faultVideos, map[string]int64{"d": 0})
	replicated(t, s.Master().Client())
	e.onceReading(func() { s.Master().Kill(t) })

	sum, err := e.agg.Pass(t.Context())

	if err == nil || sum.Errors == 0 {
		t.Errorf("got %+v, %v; want errors in both", sum, err)
	}
	for i := range faultVideos {
		if got := s.Replica().Client().Get(t.Context(), e.k.Count(fmt.Sprint(i))).Val(); got != "3" {
			t.Errorf("count of %d without a master: got %q, want 3", i, got)
		}
	}
	if sum := e.completes(); sum.Viewers != 4*faultVideos+1 || sum.Evicted != 1 {
		t.Errorf("after the failover: got %d viewers, %d evicted; want %d, 1", sum.Viewers, sum.Evicted, 4*faultVideos+1)
	}
	e.wantEach(faultVideos, "4")
	e.wantCounts(map[string]string{"10001": "1"})
}

// A planned failover takes no time, so that no command fails. But the scan goes
// on at another server, to which its cursor means nothing.
func TestPassIsPartialWhenAnotherServerTakesOver(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	e := newSentinelEnv(t, s)
	const videos = 3000 // several SCANs long
	e.seedVideos(videos, map[string]int64{"a": 0})
	replicated(t, s.Master().Client())
	replica := runID(t, s.Replica().Client())
	failover := once(func() {
		s.Failover(t)
		for runID(t, e.rdb) != replica { // until the client has followed
			must(t, t.Context().Err())
		}
	})
	e.intercept(hook{atOnce: true, after: func(_ context.Context, cmds []redis.Cmder) {
		if cmds[0].Name() == "scan" {
			failover()
		}
	}})

	sum, err := e.agg.Pass(t.Context())

	if !errors.Is(err, errTookOver) || sum.Errors == 0 {
		t.Errorf("got %+v, %v; want errors, and %v", sum, err, errTookOver)
	}
	if sum := e.completes(); sum.Videos != videos {
		t.Errorf("videos of the next pass: got %d, want %d", sum.Videos, videos)
	}
	e.wantEach(videos, "1")
}

func runID(t *testing.T, rdb redis.UniversalClient) string {
	t.Helper()
	info, _ := rdb.Info(t.Context(), "server").Result() // while it fails, there is none
	_, rest, _ := strings.Cut(info, "\nrun_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}

// replicated waits until a replica has all that the master has. WAIT waits for
// what its own connection has seen, so another command goes before it.
func replicated(t *testing.T, master *redis.Client) {
	t.Helper()
	pipe := master.Pipeline()
	pipe.Ping(t.Context())
	replicas := pipe.Do(t.Context(), "WAIT", 1, 10_000)
	_, err := pipe.Exec(t.Context())
	must(t, err)
	if n, err := replicas.Int(); err != nil || n < 1 {
		t.Fatalf("%d replicas have all that the master has (%v), want one", n, err)
	}
}
