package config

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// An outcome of a reload, as the metric's label.
const (
	applied   = "applied"
	refused   = "refused"
	unchanged = "unchanged"
)

type metrics struct {
	successful prometheus.Gauge
	reloads    *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "headcount_config_last_reload_successful",
			Help: "1 if the configuration file was valid when it was last read, 0 if it was refused.",
		}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headcount_config_reloads_total",
			Help: "Readings of a changed configuration file, or on SIGHUP, by outcome.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{applied, refused, unchanged} {
		m.reloads.WithLabelValues(outcome)
	}
	m.successful.Set(1)
	if reg == nil {
		return m, nil
	}
	return m, errors.Join(reg.Register(m.successful), reg.Register(m.reloads))
}

func (m *metrics) count(outcome string) {
	m.reloads.WithLabelValues(outcome).Inc()
	if outcome == refused {
		m.successful.Set(0)
	} else {
		m.successful.Set(1)
	}
}
