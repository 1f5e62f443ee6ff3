package console

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func TestRates(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	counter := func(name string) *prometheus.CounterVec {
		return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: name}, []string{"outcome"})
	}
	gauge := func(name string) prometheus.Gauge {
		return promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: name})
	}
	plays, leaves, lookups := counter(metricPlays), counter(metricLeaves), counter(metricLookups)
	waiting, limit := gauge(metricWaiting), gauge(metricLimit)
	promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: "other"}).Set(7)
	c := &Console{o: Options{Metrics: reg}}
	began := time.Now()
	look := func(after time.Duration) *rates {
		now := c.measure()
		now.at = began.Add(after)
		return c.samples.add(now)
	}
	want := func(what string, got, want *rates) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	want("no recorder", look(-time.Hour), nil)
	plays.WithLabelValues("recorded").Add(1000)
	plays.WithLabelValues("failed")
	leaves.WithLabelValues("recorded").Add(3)
	waiting.Set(4)
	limit.Set(100)
	want("a first look", look(0), &rates{Queue: &queue{4, 100}})

	plays.WithLabelValues("recorded").Add(80)
	plays.WithLabelValues("failed").Add(8)
	lookups.WithLabelValues("hit").Add(4)
	want("a second", look(4*time.Second), &rates{
		Seconds: 4, Plays: map[string]float64{"recorded": 20, "failed": 2}, Leaves: map[string]float64{"recorded": 0},
		Lookups: map[string]float64{"hit": 1}, Queue: &queue{4, 100},
	})
	plays.WithLabelValues("recorded").Add(24)
	want("when the first is too long ago", look(16*time.Second), &rates{
		Seconds: 12, Plays: map[string]float64{"recorded": 2, "failed": 0}, Leaves: map[string]float64{"recorded": 0},
		Lookups: map[string]float64{"hit": 0}, Queue: &queue{4, 100},
	})
	want("after a long pause", look(time.Hour), &rates{Queue: &queue{4, 100}})
}

func TestNoQueueThatIsNotExported(t *testing.T) {
	t.Parallel()
	var s samples
	if got := s.add(sample{time.Now(), map[string]float64{metricPlays + " recorded": 1}}); got == nil || got.Queue != nil {
		t.Errorf("rates = %+v, want some without a queue", got)
	}
}
