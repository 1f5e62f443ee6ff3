package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t))
	const video, viewer = "VIDEO-20417", "VIEWER-20417"
	s.play(t, video, viewer)
	s.play(t, video, viewer)
	programtest.Get(t, s.video(video, "viewers")).OK(t)
	programtest.Get(t, s.video("none", "viewers")).OK(t)
	for _, bad := range []string{"count:" + video, strings.Repeat(video, 100)} {
		programtest.Post(t, s.video(bad, "play"), `{"viewer_id":"`+viewer+`"}`)
		programtest.Get(t, s.video(bad, "viewers"))
	}
	programtest.Get(t, s.base+"/"+video)
	programtest.Post(t, s.video(video, "leave"), `{"viewer_id":"`+viewer+`"}`)

	want := []string{
		"headcount_config_last_reload_successful",
		"headcount_config_reloads_total",
		"headcount_connections_closed_total",
		"headcount_http_request_duration_seconds",
		"headcount_http_requests_in_flight",
		"headcount_http_requests_total",
		"headcount_leaves_total",
		"headcount_log_write_errors_total",
		"headcount_lookup_duration_seconds",
		"headcount_lookups_total",
		"headcount_lookups_unknown_total",
		"headcount_online_leaves_total",
		"headcount_online_total",
		"headcount_plays_total",
		"headcount_record_batch_size",
		"headcount_record_duration_seconds",
		"headcount_record_queue_length",
		"headcount_record_queue_limit",
		"headcount_refused_total",
		"headcount_stats_errors_total",
		"headcount_stats_last_error_timestamp_seconds",
	}
	if diff := cmp.Diff(want, programtest.MetricNames(t, s.admin)); diff != "" {
		t.Errorf("names of metrics (-want +got):\n%s", diff)
	}
	for series, want := range map[string]float64{
		`headcount_plays_total{outcome="recorded"}`:                            2,
		`headcount_plays_total{outcome="rejected"}`:                            2,
		`headcount_leaves_total{outcome="recorded"}`:                           1,
		`headcount_lookups_total{outcome="hit"}`:                               1,
		`headcount_lookups_total{outcome="missing"}`:                           1,
		`headcount_lookups_total{outcome="rejected"}`:                          2,
		`headcount_lookups_unknown_total`:                                      1,
		`headcount_lookup_duration_seconds_count`:                              4,
		`headcount_record_queue_length`:                                        0,
		`headcount_record_queue_limit`:                                         10000,
		`headcount_record_duration_seconds_count{kind="play"}`:                 4,
		`headcount_http_requests_in_flight`:                                    0,
		`headcount_config_last_reload_successful`:                              1,
		`headcount_http_requests_total{code="404",method="GET",route="other"}`: 1,
	} {
		if got := programtest.Metric(t, s.admin, series); got != want {
			t.Errorf("%s = %v, want %v", series, got, want)
		}
	}
	all := programtest.Get(t, s.admin+"/metrics").OK(t)
	for _, id := range []string{video, viewer} {
		if strings.Contains(all, id) {
			t.Errorf("an id is in a metric: %s", id)
		}
	}
	for _, library := range []string{"go_goroutines", "process_open_fds"} {
		if !strings.Contains(all, library) {
			t.Errorf("%s is missing", library)
		}
	}
}
