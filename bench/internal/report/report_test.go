package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/bench/internal/report"
)

func table() report.Table {
	return report.Table{
		Workload: "many",
		About:    "10 videos",
		Columns:  []report.Column{{Key: "wall_ms", Title: "wall ms"}, {Key: "cpu", Title: "÷floor"}},
		Rows: []report.Row{
			{Name: "ours", Figures: []float64{1234.5, 1.333}},
			{Name: "the floor", Figures: []float64{0.012, report.None()}},
		},
		Bars: []report.Bar{
			{Measure: "wall", Value: 9, AtLeast: true, Limit: 5},
			{Measure: "longest", Value: 7, Limit: 5, Unit: "ms"},
			{Measure: "unknown", Value: report.None(), Limit: 5},
		},
		Notes: []string{"a note"},
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	if err := table().Write(&got); err != nil {
		t.Fatal(err)
	}
	const want = `
many: 10 videos
             wall ms  ÷floor
  ours          1234    1.33
  the floor    0.012       -
  met      wall: 9.00 (bar: >= 5)
  NOT MET  longest: 7.00 ms (bar: <= 5 ms)
  NOT MET  unknown: - (bar: <= 5)
  - a note
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(table())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rows []map[string]any
		Bars []map[string]any
	}
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	wantRows := []map[string]any{
		{"name": "ours", "wall_ms": 1234.5, "cpu": 1.333},
		{"name": "the floor", "wall_ms": 0.012, "cpu": nil},
	}
	if diff := cmp.Diff(wantRows, got.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	wantBar := map[string]any{"measure": "longest", "value": 7.0, "max": 5.0, "unit": "ms", "met": false}
	if diff := cmp.Diff(wantBar, got.Bars[1]); diff != "" {
		t.Errorf("bar (-want +got):\n%s", diff)
	}
}

func TestMedianAndPercentile(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	if got := report.Median(values); got != 3 {
		t.Errorf("Median of five = %v, want 3", got)
	}
	if got := report.Median(values[1:]); got != 2.5 {
		t.Errorf("Median of four = %v, want 2.5", got)
	}
	for p, want := range map[float64]float64{0.5: 3, 0.99: 5, 1: 5, 0: 1} {
		if got := report.Percentile(values, p); got != want {
			t.Errorf("Percentile(%v) = %v, want %v", p, got, want)
		}
	}
}
