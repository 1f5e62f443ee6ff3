package lookup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// outcome is how a lookup was answered.
type outcome string

const (
	hit      outcome = "hit"      // from the count key
	cached   outcome = "cached"   // from this process's memory
	computed outcome = "computed" // counted, as there was no count key
	missing  outcome = "missing"  // 0: neither a count key nor viewers
	stale    outcome = "stale"    // the last known value, as Redis did not answer
	failed   outcome = "failed"   // no answer
	rejected outcome = "rejected" // not an acceptable id
)

type metrics struct {
	lookups  map[outcome]prometheus.Counter
	unknown  prometheus.Counter
	duration prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	lookups := f.NewCounterVec(prometheus.CounterOpts{
		Name: "headcount_lookups_total",
		Help: "Lookups by outcome: hit (from the count key), cached (from memory), computed (no count key, so the video was counted), missing (0: no count key and no viewers), stale (the last known value, as Redis did not answer), failed, rejected (bad id).",
	}, []string{"outcome"})
	m := &metrics{
		lookups: make(map[outcome]prometheus.Counter),
		unknown: f.NewCounter(prometheus.CounterOpts{
			Name: "headcount_lookups_unknown_total",
			Help: "Lookups answered with a number of which nobody can tell when it was true (as_of is null): no complete pass within count_ttl.",
		}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headcount_lookup_duration_seconds",
			Help:    "Time to answer a lookup, of one video or of several.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 4, 11),
		}),
	}
	for _, o := range []outcome{hit, cached, computed, missing, stale, failed, rejected} {
		m.lookups[o] = lookups.WithLabelValues(string(o)) // from the start, or an alert on its rate misses the first
	}
	return m
}

// observe is for a call that has one outcome.
func (m *metrics) observe(start time.Time, o outcome) {
	m.count(o)
	m.took(start)
}

// count counts one video's outcome.
func (m *metrics) count(o outcome) { m.lookups[o].Inc() }

// answered counts a video that got an answer.
func (m *metrics) answered(a answer) {
	m.count(a.outcome)
	if a.asOf.IsZero() {
		m.unknown.Inc()
	}
}

// took is for a call, whatever the number of videos in it.
func (m *metrics) took(start time.Time) { m.duration.Observe(time.Since(start).Seconds()) }
