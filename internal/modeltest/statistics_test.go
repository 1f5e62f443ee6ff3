package modeltest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/internal/keys"
	"headcount/recorder"
	"headcount/stats"
)

// topSize is fewer than there are videos.
const topSize = 4

// statistics are all that are kept of a world.
type statistics struct {
	store    *stats.Store
	failures *stats.Failures
	online   *stats.Online
	trims    *stats.Online // by passes; nil: another kind's do it
	uniques  *stats.Uniques
	plays    *stats.Plays
	top      *stats.Top
}

// newStatistics are those of a kind. Who is online, all kinds share with the first.
func newStatistics(t *testing.T, rdb redis.UniversalClient, k keys.Keys, first *statistics) *statistics {
	t.Helper()
	store, err := stats.NewStore(rdb, stats.Options{Keys: k, Timeout: 10 * time.Second})
	must(t, err)
	t.Cleanup(store.Close)
	failures, err := stats.NewFailures(nil, nil)
	must(t, err)
	s := &statistics{
		store: store, failures: failures,
		online: stats.NewOnline(store, window, keyTTL), uniques: stats.NewUniques(store),
		plays: stats.NewPlays(store, failures), top: stats.NewTop(store, topSize, countTTL),
	}
	s.trims = s.online
	if first != nil {
		s.online, s.trims = first.online, nil
	}
	return s
}

func (s *statistics) recorded() recorder.Statistics {
	return recorder.Statistics{Online: s.online, Uniques: s.uniques, Plays: s.plays, Failed: s.failures.Note}
}

// newWorker forgets for which day each peak was looked at.
func (s *statistics) newWorker() func(time.Time) aggregator.Observer {
	passes := &stats.Passes{
		Online: s.trims, Plays: s.plays, Top: s.top, Peaks: stats.NewPeaks(s.store),
		History: stats.NewHistory(s.store, 24*time.Hour), KeyTTL: keyTTL, Failures: s.failures,
	}
	return func(began time.Time) aggregator.Observer { return passes.Begin(began) }
}

func (w *world) heartbeat(m *model, viewer string) {
	at, err := w.rec.Online(w.t.Context(), viewer)
	must(w.t, err)
	m.site[viewer] = at
}

func (w *world) leaveSite(m *model, viewer string, recordedAt int64) {
	must(w.t, w.rec.Offline(w.t.Context(), viewer, recordedAt))
	m.leaveSite(viewer, recordedAt)
}

// compareStatistics compares what is exact, after a pass.
func (w *world) compareStatistics(m *model) {
	ctx := w.t.Context()
	online, _, err := w.stats.online.Count(ctx)
	must(w.t, err)
	if want := m.onSite(w.clock.now()); online != want {
		w.t.Errorf("online: got %d, want %d", online, want)
	}
	for video, want := range m.plays {
		got, err := w.stats.plays.Total(ctx, video)
		must(w.t, err)
		if got != want {
			w.t.Errorf("plays of %q: got %d, want %d", video, got, want)
		}
	}
	for video, want := range m.peaks {
		got, err := w.rdb.HMGet(ctx, w.k.Peak(video), "day", "today", "ever").Result()
		must(w.t, err)
		if text := fmt.Sprint(got); text != fmt.Sprint([]any{want.day, want.today, want.ever}) {
			w.t.Errorf("peaks of %q: got %s, want %v", video, text, *want)
		}
	}
	videos, viewers, _, err := w.stats.top.List(ctx, topSize)
	must(w.t, err)
	var got []string
	for i, video := range videos {
		got = append(got, fmt.Sprintf("%06d %s", viewers[i], video))
	}
	if diff := cmp.Diff(m.top(), got); diff != "" {
		w.t.Errorf("top (-model +Redis):\n%s", diff)
	}
}

// top is the largest videos, as lines in the order of the list.
func (m *model) top() (lines []string) {
	for video, viewers := range m.videos {
		if len(viewers) > 0 {
			lines = append(lines, fmt.Sprintf("%06d %s", len(viewers), video))
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	return lines[:min(topSize, len(lines))]
}

// compareUniques compares an estimate, in the end: all was within the 7 days.
func (w *world) compareUniques(m *model) {
	for video, viewers := range m.uniques {
		got, _, _, err := w.stats.uniques.Count(w.t.Context(), video, "7d")
		must(w.t, err)
		want := int64(len(viewers))
		if off := max(1, want/50); got < want-off || got > want+off {
			w.t.Errorf("uniques of %q: got %d, want %d and 2 %%", video, got, want)
		}
	}
	if viewers := m.uniques[""]; len(viewers) < 40 {
		w.t.Errorf("only %s viewers: the test has shown little", strconv.Itoa(len(viewers)))
	}
}
