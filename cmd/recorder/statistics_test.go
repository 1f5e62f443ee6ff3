package main

import (
	"net/http"
	"strings"
	"testing"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// Statistics that are off keep no key, and their routes say so.
func TestStatisticsOff(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t),
		"HEADCOUNT_STATS_ONLINE=false", "HEADCOUNT_STATS_UNIQUES=false", "HEADCOUNT_STATS_PLAYS=false",
		"HEADCOUNT_STATS_PEAKS=false", "HEADCOUNT_STATS_TOP=0", "HEADCOUNT_STATS_HISTORY=0s")
	s.play(t, "10001", "u1")
	for _, path := range []string{"/v1/online", "/v1/uniques", "/v1/plays", "/v1/top", "/v1/history", "/v1/videos/10001/stats"} {
		got := programtest.Get(t, s.base+path)
		if got.Code != http.StatusNotFound || !strings.Contains(got.Body, "this statistic is off: stats.") {
			t.Errorf("%s = %v, want 404 and the setting", path, got)
		}
	}
	if got := redistest.Shared(t).Client().Keys(t.Context(), s.keys.Top()[:len(s.keys.Top())-len("top")]+"*").Val(); len(got) > 0 {
		t.Errorf("there are keys: %q", got)
	}
}

// Everything is on by default, and days are those of the zone.
func TestStatisticsOfAPlay(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_STATS_TIME_ZONE=Asia/Shanghai")
	s.play(t, "10001", "u1")
	s.play(t, "10001", "u1")
	for path, want := range map[string]string{
		"/v1/online":                             `{"online":1,`,
		"/v1/videos/10001/uniques":               `{"uniques":1,`,
		"/v1/videos/10001/plays?per=day&last=1d": `T00:00:00+08:00","plays":1}]}`,
		"/v1/plays?per=hour&last=1h":             `{"total":1,`,
		"/v1/top":                                `{"videos":[],"as_of":null}`,
		"/v1/videos/10001/stats":                 `"peaks":{"today":null,"ever":null},"plays":1,"uniques_24h":1}`,
	} {
		if got := programtest.Get(t, s.base+path).OK(t); !strings.Contains(got, want) {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
}
