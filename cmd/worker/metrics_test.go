package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	const video, viewer = "VIDEO-20417", "VIEWER-20417"
	s.seed(t, video, viewer, 0)
	s.seed(t, video, viewer+"-gone", time.Hour)
	s.seed(t, video, viewer+"-wrong", -time.Hour)
	if err := s.Client().Set(t.Context(), s.keys.Online("text"), "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	w := s.worker(t, "HEADCOUNT_WORKER_INTERVAL=10m")
	w.Wait(t, passComplete)
	admin := w.URL(t, "admin")

	want := []string{
		"headcount_config_last_reload_successful",
		"headcount_config_reloads_total",
		"headcount_healed_ttls_total",
		"headcount_invalid_values_total",
		"headcount_last_complete_pass_timestamp_seconds",
		"headcount_lease_held",
		"headcount_log_write_errors_total",
		"headcount_pass_duration_seconds",
		"headcount_pass_errors_total",
		"headcount_pass_foreign_keys",
		"headcount_pass_videos",
		"headcount_pass_viewers",
		"headcount_passes_total",
		"headcount_passes_without_lease_total",
		"headcount_stats_errors_total",
		"headcount_stats_last_error_timestamp_seconds",
		"headcount_viewers_evicted_total",
		"headcount_worker_interval_seconds",
	}
	if diff := cmp.Diff(want, programtest.MetricNames(t, admin)); diff != "" {
		t.Errorf("names of metrics (-want +got):\n%s", diff)
	}
	for series, want := range map[string]float64{
		`headcount_passes_total{outcome="complete"}`: 1,
		`headcount_pass_duration_seconds_count`:      1,
		`headcount_pass_videos`:                      1,
		`headcount_pass_viewers`:                     1,
		`headcount_pass_foreign_keys`:                1,
		`headcount_viewers_evicted_total`:            2,
		`headcount_invalid_values_total`:             1,
		`headcount_healed_ttls_total`:                1,
		`headcount_pass_errors_total`:                0,
		`headcount_lease_held`:                       1,
		`headcount_worker_interval_seconds`:          600,
		`headcount_passes_without_lease_total`:       0,
	} {
		if got := programtest.Metric(t, admin, series); got != want {
			t.Errorf("%s = %v, want %v", series, got, want)
		}
	}
	at := time.Unix(int64(programtest.Metric(t, admin, "headcount_last_complete_pass_timestamp_seconds")), 0)
	if time.Since(at).Abs() > time.Minute {
		t.Errorf("headcount_last_complete_pass_timestamp_seconds = %s, want now", at)
	}
	all := programtest.Get(t, admin+"/metrics").OK(t)
	for _, id := range []string{video, viewer} {
		if strings.Contains(all, id) {
			t.Errorf("an id is in a metric: %s", id)
		}
	}
}
