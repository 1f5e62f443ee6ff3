package aggregator

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

// TestPassOnAClusterOfItsOwn has the tests that need all of a cluster, one after
// the other: what they change is as it was when they end.
func TestPassOnAClusterOfItsOwn(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	for _, tc := range []struct {
		name string
		test func(*testing.T, *redistest.Cluster)
	}{
		{"TTLs", testTTLsOfEveryMaster}, // first: it must not find keys without TTL
		{"a video moves", testVideoMoves},
		{"half a slot moves", testSlotIsHalfMoved},
		{"a large hash moves", testLargeHashMoves},
		{"a large hash moves twice", testLargeHashMovesTwice},
		{"a zero hides no first viewer", testZeroHidesNoFirstViewer},
		{"a video slips by the scans", testVideoSlipsByTheScans},
		{"slots are nobody's", testSlotsAreNobodys},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, c) })
	}
}

// Whether every key has a TTL is asked of each master, and a video is mostly
// dealt with by the sweep of another one than its hash's or its count's.
func testTTLsOfEveryMaster(t *testing.T, c *redistest.Cluster) {
	e := newClusterEnv(t, c)
	const videos = 100
	e.seedVideos(videos, map[string]int64{"a": 0})
	e.pass()
	spy := spyOn(e)
	e.pass()
	if sent := spy.take(); sent["ttl"] != 0 || sent["hrandfield"] != 0 || sent["set"] != 0 {
		t.Errorf("a pass over keys with TTLs in which nobody is due sent %v, want no reading, no writing and no TTL asked", sent)
	}
	for _, s := range c.Masters() {
		bare := int64(0)
		for i := range videos {
			for _, key := range []string{e.k.Online(fmt.Sprint(i)), e.k.Count(fmt.Sprint(i))} {
				if c.Owner(t, c.Slot(t, key)) == s && i%2 == 0 {
					must(t, e.raw.Persist(t.Context(), key).Err())
					bare++
				}
			}
		}
		e.pass()
		for i := range videos {
			e.wantTTL(e.k.Online(fmt.Sprint(i)), keyTTL-time.Minute, keyTTL)
			e.wantTTL(e.k.Count(fmt.Sprint(i)), countTTL-time.Minute, countTTL+countTTL/50)
		}
		if bare == 0 {
			t.Errorf("master %s had no key to mend", s.Addr())
		}
	}
}

// Slots without an owner hold keys that nobody sees now.
func testSlotsAreNobodys(t *testing.T, c *redistest.Cluster) {
	e := newClusterEnv(t, c)
	e.seedFault()
	free := slices.DeleteFunc([]int{1, 6000, 12000}, func(slot int) bool {
		return slot == c.Slot(t, e.k.LastPass())
	})
	owners := make(map[int]*redistest.Server)
	for _, slot := range free {
		owners[slot] = c.Owner(t, slot)
		for _, s := range c.Masters() {
			must(t, s.Client().ClusterDelSlots(t.Context(), slot).Err())
		}
	}
	if got := e.partial(10 * time.Second); !errors.Is(got.err, redisclient.ErrNotCovered) {
		t.Errorf("error: got %v, want %v", got.err, redisclient.ErrNotCovered)
	}
	for slot, owner := range owners {
		must(t, owner.Client().ClusterAddSlots(t.Context(), slot).Err())
	}
	if sum := e.completes(); sum.Videos != faultVideos {
		t.Errorf("videos with all slots served: got %d, want %d", sum.Videos, faultVideos)
	}
	e.wantEach(faultVideos, "3")
}
