package program

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"headcount/internal/config"
)

// A kind's metrics are gathered as if it were the only one, beside those that are of none.
func TestKindsGather(t *testing.T) {
	t.Parallel()
	p, err := Start(config.Options{Program: "test", Args: []string{"--kinds", "film,live"}, Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	promauto.With(p.Metrics).NewGauge(prometheus.GaugeOpts{Name: "headcount_of_all"}).Set(7)
	for i, k := range p.Kinds() {
		promauto.With(k.Metrics).NewGaugeVec(prometheus.GaugeOpts{Name: "headcount_of_kind"}, []string{"outcome"}).
			WithLabelValues("recorded").Set(float64(i + 1))
	}
	for range 2 { // gathering changes no metric
		for i, k := range p.Kinds() {
			want := map[string]float64{"headcount_of_all": 7, "headcount_of_kind recorded": float64(i + 1)}
			if diff := cmp.Diff(want, gathered(t, k.Gatherer)); diff != "" {
				t.Errorf("metrics of %s (-want +got):\n%s", k.Name, diff)
			}
		}
	}
}

// gathered are our metrics by name and labels.
func gathered(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			if name == "headcount_of_all" || family.GetName() == "headcount_of_kind" {
				values[name] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}
