package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"headcount/internal/keys"
)

// kind is what a request asks for.
type kind int

const (
	play kind = iota
	leave
	online
	offline
	flush // no request of a caller, but for what is left to write

	kinds = flush // of callers
)

type metrics struct {
	requests [kinds]*prometheus.CounterVec // by kind
	duration [kinds]prometheus.Observer    // by kind
	batch    prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string, outcomes ...string) *prometheus.CounterVec {
		c := f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"outcome"})
		for _, o := range append(outcomes, "recorded", "rejected", "busy", "abandoned", "failed") {
			c.WithLabelValues(o) // from the start, or an alert on its rate misses the first
		}
		return c
	}
	duration := f.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "headcount_record_duration_seconds",
		Help:    "Time from a play, leave or heartbeat to Redis's answer, waiting included.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12),
	}, []string{"kind"})
	return &metrics{
		requests: [kinds]*prometheus.CounterVec{
			counter("headcount_plays_total", "Plays by outcome: recorded, rejected (bad id), full (the video has as many viewers as it may), busy (queue full), abandoned (the caller went away), failed (Redis refused, or took too long).", "full"),
			counter("headcount_leaves_total", "Leaves by outcome, as for plays."),
			counter("headcount_online_total", "Heartbeats of viewers who are on the site, by outcome, as for plays."),
			counter("headcount_online_leaves_total", "Leaves of the site by outcome, as for plays."),
		},
		duration: [kinds]prometheus.Observer{
			duration.WithLabelValues("play"), duration.WithLabelValues("leave"),
			duration.WithLabelValues("online"), duration.WithLabelValues("online_leave"),
		},
		batch: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headcount_record_batch_size",
			Help:    "Plays, leaves and heartbeats that travelled to Redis in one write.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 15),
		}),
	}
}

// exportQueue exports how many requests wait, and how many may: when it is full, more are refused.
func exportQueue(reg prometheus.Registerer, length func() int, limit int) {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headcount_record_queue_length",
		Help: "Plays and leaves that wait for the next write.",
	}, func() float64 { return float64(length()) })
	f.NewGauge(prometheus.GaugeOpts{
		Name: "headcount_record_queue_limit",
		Help: "Plays and leaves that may wait; more are refused as busy.",
	}).Set(float64(limit))
}

func (m *metrics) observe(ctx context.Context, k kind, start time.Time, err *error) {
	m.requests[k].WithLabelValues(outcome(ctx, *err)).Inc()
	m.duration[k].Observe(time.Since(start).Seconds())
}

// outcome tells a caller that went away from one for whom Redis took too long by
// the caller's context: the errors look the same.
func outcome(ctx context.Context, err error) string {
	var badID *keys.IDError
	switch {
	case err == nil:
		return "recorded"
	case errors.As(err, &badID):
		return "rejected"
	case errors.Is(err, ErrFull):
		return "full"
	case errors.Is(err, ErrBusy):
		return "busy"
	case errors.Is(ctx.Err(), context.Canceled):
		return "abandoned"
	}
	return "failed"
}
