package dataset_test

import (
	"testing"
	"time"

	"headcount/bench/internal/dataset"
)

func TestWhoIsStale(t *testing.T) {
	t.Parallel()
	set := dataset.Set{Videos: 1000, Viewers: 20}
	now := time.Unix(1_700_000_000, 0)
	oldest := now.Add(-dataset.Window).Unix()
	ids := make(map[string]bool)
	var stale int64
	for video := range set.Videos {
		for viewer := range set.Viewers {
			ids[set.ViewerID(video, viewer)] = true
			at := set.LastSeen(now, video, viewer)
			if at > now.Unix() || (at < oldest) != set.Stale(video, viewer) {
				t.Fatalf("viewer %d of video %d: last seen %d s ago, Stale is %v", viewer, video, now.Unix()-at, set.Stale(video, viewer))
			}
			if at < oldest {
				stale++
			}
		}
	}
	if got := int64(len(ids)); got != set.Total() {
		t.Errorf("%d different viewers, want %d", got, set.Total())
	}
	if got := set.Total() - set.Fresh(); got != stale {
		t.Errorf("Fresh leaves out %d, want %d", got, stale)
	}
	if share := float64(stale) / float64(set.Total()); share < 0.045 || share > 0.055 {
		t.Errorf("a share of %v is stale, want about 0.05", share)
	}
}
