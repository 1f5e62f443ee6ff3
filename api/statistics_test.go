package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"headcount/api"
)

// fakeStatistics answer with what they were asked.
type fakeStatistics struct{ at time.Time }

type (
	fakeOnline  fakeStatistics
	fakeUniques fakeStatistics
	fakePlays   fakeStatistics
	fakeTop     fakeStatistics
	fakePeaks   fakeStatistics
	fakeHistory fakeStatistics
)

func (f fakeOnline) Count(context.Context) (int64, time.Time, error) { return 7, f.at, nil }

func (f fakeUniques) Count(_ context.Context, videoID, last string) (int64, time.Time, time.Time, error) {
	return int64(len(videoID) + len(last)), f.at.Add(-time.Hour), f.at, nil
}

func (f fakePlays) Count(_ context.Context, videoID, per, last string) (int64, []time.Time, []int64, error) {
	return int64(len(videoID)), []time.Time{f.at}, []int64{int64(len(per) + len(last))}, nil
}

func (f fakeTop) List(_ context.Context, limit int) ([]string, []int64, time.Time, error) {
	return []string{"<a>"}, []int64{int64(limit)}, f.at, nil
}

func (f fakePeaks) Get(context.Context, string) (int64, time.Time, int64, time.Time, error) {
	return 0, time.Time{}, 9, f.at, nil
}

func (f fakeHistory) Points(_ context.Context, videoID, last string) ([]time.Time, []int64, error) {
	if videoID == "none" {
		return nil, nil, nil
	}
	return []time.Time{f.at}, []int64{int64(len(last))}, nil
}

func statisticsOf(s *fakeStore) api.Statistics {
	f := fakeStatistics{at: time.Date(2026, 11, 30, 15, 0, 0, 500, time.FixedZone("CET", 3600))}
	return api.Statistics{
		Site: site{s}, Online: fakeOnline(f), Uniques: fakeUniques(f), Plays: fakePlays(f),
		Top: fakeTop(f), Peaks: fakePeaks(f), History: fakeHistory(f),
	}
}

// site notes heartbeats and leaves as calls of a store.
type site struct{ s *fakeStore }

func (s site) Online(ctx context.Context, viewerID string) (int64, error) {
	return s.s.recordedAt, s.s.note(ctx, call{"online", "", viewerID, 0})
}

func (s site) Offline(ctx context.Context, viewerID string, recordedAt int64) error {
	return s.s.note(ctx, call{"offline", "", viewerID, recordedAt})
}

func TestStatisticsAnswers(t *testing.T) {
	t.Parallel()
	s := newStore()
	o := options(s)
	o.Statistics = statisticsOf(s)
	h := api.Handler(o)
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "/v1/online", `{"viewer_id":"u1"}`, `{"recorded_at":1700000000,"beat_after":150}`},
		{"GET", "/v1/online", "", `{"online":7,"as_of":"2026-11-30T14:00:00Z"}`},
		{"GET", "/v1/uniques?last=24h", "", `{"uniques":3,"from":"2026-11-30T14:00:00.0000005+01:00","to":"2026-11-30T15:00:00+01:00","standard_error":0.0081}`},
		{"GET", "/v1/videos/a%2Fb/uniques", "", `{"uniques":3,"from":"2026-11-30T14:00:00.0000005+01:00","to":"2026-11-30T15:00:00+01:00","standard_error":0.0081}`},
		{"GET", "/v1/plays?per=day&last=3d", "", `{"total":0,"periods":[{"from":"2026-11-30T15:00:00.0000005+01:00","plays":5}]}`},
		{"GET", "/v1/videos/%2F/plays", "", `{"total":1,"periods":[{"from":"2026-11-30T15:00:00.0000005+01:00","plays":0}]}`},
		{"GET", "/v1/top", "", `{"videos":[{"video_id":"<a>","viewers":0}],"as_of":"2026-11-30T14:00:00Z"}`},
		{"GET", "/v1/top?limit=007", "", `{"videos":[{"video_id":"<a>","viewers":7}],"as_of":"2026-11-30T14:00:00Z"}`},
		{"GET", "/v1/top?limit=%2B5", "", `{"videos":[{"video_id":"<a>","viewers":-1}],"as_of":"2026-11-30T14:00:00Z"}`},
		{"GET", "/v1/videos/x/history?last=1h", "", `{"points":[{"at":"2026-11-30T14:00:00Z","viewers":2}]}`},
		{"GET", "/v1/videos/none/history", "", `{"points":[]}`},
		{"GET", "/v1/videos/x/stats", "", `{"video_id":"x","viewers":23,"as_of":"2026-11-30T14:00:00Z","peaks":{"today":null,"ever":{"at":"2026-11-30T14:00:00Z","viewers":9}},"plays":1,"uniques_24h":4}`},
	} {
		res := send(t, h, tt.method, tt.path, tt.body)
		if res.status != http.StatusOK || res.body != tt.want+"\n" {
			t.Errorf("%s %s = %d %s, want 200 %s", tt.method, tt.path, res.status, res.body, tt.want)
		}
		cacheable := tt.method == "GET" && tt.path != "/v1/videos/none/history"
		if got := res.header.Get("Cache-Control"); (got == "public, max-age=3") != cacheable {
			t.Errorf("%s %s: Cache-Control %q", tt.method, tt.path, got)
		}
	}
}

func TestOfflinePassesTheGuardOn(t *testing.T) {
	t.Parallel()
	s := newStore()
	o := options(s)
	o.Statistics = statisticsOf(s)
	if res := send(t, api.Handler(o), "POST", "/v1/online/leave", `{"viewer_id":"u1","recorded_at":1700000000}`); res.status != http.StatusNoContent {
		t.Errorf("status = %d, want 204", res.status)
	}
	if got, want := s.Calls(), (call{"offline", "", "u1", 1700000000}); len(got) != 1 || got[0] != want {
		t.Errorf("calls = %v, want %v", got, want)
	}
}

func TestStatisticsThatAreOffSaySo(t *testing.T) {
	t.Parallel()
	h := api.Handler(options(newStore()))
	for path, setting := range map[string]string{
		"/v1/online":           "stats.online",
		"/v1/uniques":          "stats.uniques",
		"/v1/videos/x/uniques": "stats.uniques",
		"/v1/plays":            "stats.plays",
		"/v1/videos/%2F/plays": "stats.plays",
		"/v1/top":              "stats.top",
		"/v1/history":          "stats.history",
		"/v1/videos/x/history": "stats.history",
		"/v1/videos/x/stats":   "stats.peaks, stats.plays and stats.uniques",
	} {
		res := send(t, h, "GET", path, "")
		if want := problemJSON(http.StatusNotFound, "this statistic is off: "+setting); res.status != http.StatusNotFound || res.body != want {
			t.Errorf("%s = %d %s, want 404 %s", path, res.status, res.body, want)
		}
	}
	for _, path := range []string{"/v1/online", "/v1/online/leave"} {
		if res := send(t, h, "POST", path, `{"viewer_id":"u1"}`); res.status != http.StatusNotFound {
			t.Errorf("POST %s = %d, want 404", path, res.status)
		}
	}
}

func TestOverviewWithoutSomeStatistics(t *testing.T) {
	t.Parallel()
	s := newStore()
	o := options(s)
	o.Statistics.Plays = statisticsOf(s).Plays
	res := send(t, api.Handler(o), "GET", "/v1/videos/x/stats", "")
	want := `{"video_id":"x","viewers":23,"as_of":"2026-11-30T14:00:00Z","peaks":null,"plays":1,"uniques_24h":null}` + "\n"
	if res.body != want {
		t.Errorf("answer = %s, want %s", res.body, want)
	}
}
