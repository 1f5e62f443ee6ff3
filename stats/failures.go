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
	f.errors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "headcount_stats_errors_total",
		Help: "Writes of a statistic that failed, by statistic. Neither plays nor counts are affected.",
	}, []string{"statistic"})
	if reg != nil {
		if err := reg.Register(f.errors); err != nil {
			registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err)
			if !ok {
				return nil, err
			}
			f.errors = registered.ExistingCollector.(*prometheus.CounterVec)
		}
	}
	for _, name := range []string{nameOnline, nameUniques, namePlays, nameTop, namePeaks, nameHistory} {
		f.errors.WithLabelValues(name) // from the start, or an alert on its rate misses the first
	}
	return f, nil
}

// Note takes in why a statistic could not be written.
func (f *Failures) Note(statistic string, err error) {
	f.errors.WithLabelValues(statistic).Inc()
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
