package console

import (
	"strings"
	"sync"
	"time"
)

// rates are what this program does in a second, over the last moments in which
// somebody looked.
type rates struct {
	Seconds float64            `json:"seconds"` // looked at; 0: not yet long enough
	Plays   map[string]float64 `json:"plays"`   // by outcome
	Leaves  map[string]float64 `json:"leaves"`
	Lookups map[string]float64 `json:"lookups"`
	Queue   *queue             `json:"queue"`
}

// queue is the plays and leaves that wait for a write.
type queue struct {
	Length int64 `json:"length"`
	Limit  int64 `json:"limit"`
}

// sample is the values of this program's metrics at a moment, by name and outcome.
type sample struct {
	at     time.Time
	values map[string]float64
}

const (
	metricPlays   = "headcount_plays_total"
	metricLeaves  = "headcount_leaves_total"
	metricLookups = "headcount_lookups_total"
	metricWaiting = "headcount_record_queue_length"
	metricLimit   = "headcount_record_queue_limit"
	metricReload  = "headcount_config_last_reload_successful"
	metricStats   = "headcount_stats_last_error_timestamp_seconds"
)

// measure reads our own metrics. One that cannot be read is missing.
func (c *Console) measure() sample {
	s := sample{at: time.Now(), values: make(map[string]float64)}
	families, _ := c.o.Metrics.Gather() // has what could be gathered
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "headcount_") {
			continue
		}
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			s.values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return s
}

// samples are those of the last moments, the oldest first.
type samples struct {
	mu  sync.Mutex
	all []sample
}

const (
	longest  = 15 * time.Second       // that rates are over
	shortest = 500 * time.Millisecond // likewise
)

// add adds a sample and returns the rates since the oldest one; nil if this
// program records nothing.
func (s *samples) add(now sample) *rates {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.all) > 0 && now.at.Sub(s.all[0].at) > longest {
		s.all = s.all[1:]
	}
	if len(s.all) == 0 || now.at.Sub(s.all[len(s.all)-1].at) >= shortest {
		s.all = append(s.all, now)
	}
	if !now.has(metricPlays) {
		return nil
	}
	r := &rates{Queue: now.queue()}
	if seconds := now.at.Sub(s.all[0].at).Seconds(); seconds >= shortest.Seconds() {
		r.Seconds = seconds
		r.Plays = now.perSecond(s.all[0], metricPlays, seconds)
		r.Leaves = now.perSecond(s.all[0], metricLeaves, seconds)
		r.Lookups = now.perSecond(s.all[0], metricLookups, seconds)
	}
	return r
}

func (s sample) has(metric string) bool {
	for name := range s.values {
		if strings.HasPrefix(name, metric) {
			return true
		}
	}
	return false
}

func (s sample) perSecond(before sample, metric string, seconds float64) map[string]float64 {
	rate := make(map[string]float64)
	for name, value := range s.values {
		if outcome, found := strings.CutPrefix(name, metric+" "); found {
			rate[outcome] = (value - before.values[name]) / seconds
		}
	}
	return rate
}

func (s sample) queue() *queue {
	limit, known := s.values[metricLimit]
	if !known {
		return nil
	}
	return &queue{int64(s.values[metricWaiting]), int64(limit)}
}

// share is which part of all outcomes, but those that say nothing, some have; 0
// where there are too few to tell.
func share(rate map[string]float64, seconds float64, of []string, without ...string) float64 {
	var all, some float64
	for outcome, n := range rate {
		all += n
		for _, o := range without {
			if o == outcome {
				all -= n
			}
		}
	}
	for _, o := range of {
		some += rate[o]
	}
	const enough = 5
	if all*seconds < enough {
		return 0
	}
	return some / all
}
