package aggregator

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// An outcome of a pass, as the metric's label.
const (
	complete = "complete"
	partial  = "partial"
	cutShort = "cut_short"
)

type metrics struct {
	passes       *prometheus.CounterVec
	duration     prometheus.Histogram
	videos       prometheus.Gauge
	viewers      prometheus.Gauge
	foreign      prometheus.Gauge
	evicted      prometheus.Counter
	invalid      prometheus.Counter
	healed       prometheus.Counter
	errors       prometheus.Counter
	lastComplete prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	passes := f.NewCounterVec(prometheus.CounterOpts{
		Name: "headcount_passes_total",
		Help: "Passes by outcome: complete, partial (some of it failed; see headcount_pass_errors_total), or cut_short (the lease was lost, or the worker stopped).",
	}, []string{"outcome"})
	for _, o := range []string{complete, partial, cutShort} {
		passes.WithLabelValues(o) // from the start, or an alert on its rate misses the first
	}
	return &metrics{
		passes: passes,
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headcount_pass_duration_seconds",
			Help:    "How long a pass took.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 12),
		}),
		videos:       gauge("headcount_pass_videos", "Videos with a viewer in the last complete pass."),
		viewers:      gauge("headcount_pass_viewers", "Viewers over all videos in the last complete pass."),
		foreign:      gauge("headcount_pass_foreign_keys", "Keys of another type under the prefix in the last complete pass."),
		evicted:      counter("headcount_viewers_evicted_total", "Viewers removed by passes: stale, or with an invalid value."),
		invalid:      counter("headcount_invalid_values_total", "Viewers removed because their value was no plausible time."),
		healed:       counter("headcount_healed_ttls_total", "Keys that another program left without a TTL, or with one too short, and that got one."),
		errors:       counter("headcount_pass_errors_total", "Videos, and scans of a server, that failed in a pass."),
		lastComplete: gauge("headcount_last_complete_pass_timestamp_seconds", "When the last complete pass of this process finished, Unix time by Redis's clock; 0 before the first."),
	}
}

func (m *metrics) observe(sum Summary, err error) {
	m.duration.Observe(sum.Took.Seconds())
	m.evicted.Add(float64(sum.Evicted))
	m.invalid.Add(float64(sum.Invalid))
	m.healed.Add(float64(sum.Healed))
	m.errors.Add(float64(sum.Errors))
	if err != nil { // what the pass saw is not what there is
		m.passes.WithLabelValues(outcome(err)).Inc()
		return
	}
	m.passes.WithLabelValues(complete).Inc()
	m.videos.Set(float64(sum.Videos))
	m.viewers.Set(float64(sum.Viewers))
	m.foreign.Set(float64(sum.Foreign))
	m.lastComplete.Set(float64(sum.Finished.Unix()))
}

func outcome(err error) string {
	if errors.Is(err, ErrCutShort) {
		return cutShort
	}
	return partial
}
