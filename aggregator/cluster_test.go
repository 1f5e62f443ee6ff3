package aggregator

import (
	"fmt"
	"testing"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func TestPassSweepsEveryMasterOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	e := newEnvOn(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: cluster.Addrs()})
	want := make(map[string]string)
	for i := range 300 {
		video := fmt.Sprint(i)
		e.seed(video, map[string]int64{"a": 0, "b": 0, "gone": 700})
		want[video] = "2"
	}
	must(t, e.raw.Set(t.Context(), e.k.Count("nobody"), 5, 0).Err())
	want["nobody"] = "0"

	sum := e.pass()

	if sum.Videos != 300 || sum.Viewers != 600 || sum.Evicted != 300 || sum.Healed != 300 {
		t.Errorf("got %+v, want 300 videos with 600 viewers, 300 evicted, 300 TTLs healed", sum)
	}
	e.wantCounts(want)
	for i := range 300 {
		e.wantViewers(fmt.Sprint(i), "a", "b")
	}
}

func TestPassBehindSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	e := newEnvOn(t, redisclient.Options{Mode: redisclient.Sentinel, Addrs: s.Addrs(), MasterName: s.MasterName})
	e.seed("10001", map[string]int64{"a": 0, "gone": 700})
	e.pass()
	e.wantCounts(map[string]string{"10001": "1"})
	e.wantViewers("10001", "a")
}
