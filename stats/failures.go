package stats

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"headcount/internal/redisclient"
)

// The names of statistics in logs and metrics, which are those of their settings.
const (
	nameOnline  = "online"
	nameUniques = "uniques"
	namePlays   = "plays"
	nameTop     = "top"
	namePeaks   = "peaks"
	nameHistory = "history"
)

// Failures counts the writes of statistics that fail, and tells an operator of
// them: nobody else hears. It is safe for concurrent use.
type Failures struct {
	log    *zap.Logger
	errors *prometheus.CounterVec
	latest *prometheus.GaugeVec

	mu   sync.Mutex
	last map[string]time.Time // of each statistic's failures
}

// quiet is how long a statistic must not have failed to be reported again.
const quiet = time.Minute

// NewFailures returns Failures that log to log, nil for silence. reg may have the
// metric already, of another service in the same process; nil exports nothing.
func NewFailures(log *zap.Logger, reg prometheus.Registerer) (*Failures, error) {
	if log == nil {
		log = zap.NewNop()
	}
	f := &Failures{log: log, last: make(map[string]time.Time)}
	var err error
	if f.errors, err = register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "headcount_stats_errors_total",
		Help: "Writes of a statistic that failed, by statistic. Neither plays nor counts are affected.",
	}, []string{"statistic"})); err != nil {
		return nil, err
	}
	if f.latest, err = register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "headcount_stats_last_error_timestamp_seconds",
		Help: "When the last write of a statistic failed, by statistic; 0: none has.",
	}, []string{"statistic"})); err != nil {
		return nil, err
	}
	for _, name := range []string{nameOnline, nameUniques, namePlays, nameTop, namePeaks, nameHistory} {
		f.errors.WithLabelValues(name) // from the start, or an alert on its rate misses the first
		f.latest.WithLabelValues(name)
	}
	return f, nil
}

// register returns the collector that reg has: c, or the one of that name that was there before.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) (C, error) {
	if reg == nil {
		return c, nil
	}
	err := reg.Register(c)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return there.ExistingCollector.(C), nil
	}
	return c, err
}

// Note takes in why a statistic could not be written.
func (f *Failures) Note(statistic string, err error) {
	f.errors.WithLabelValues(statistic).Inc()
	f.latest.WithLabelValues(statistic).SetToCurrentTime()
	now := time.Now()
	f.mu.Lock()
	first := now.Sub(f.last[statistic]) > quiet
	f.last[statistic] = now
	f.mu.Unlock()
	if first {
		f.log.Warn("a statistic is not written; plays and counts are not affected",
			zap.String("statistic", statistic), zap.String("reason", redisclient.Reason(err)))
	}
}
