package console

import (
	"time"

	"headcount/internal/lastpass"
)

// warning is something that an operator should see to. The page has its words.
type warning struct {
	Kind    string         `json:"kind"`
	Runbook string         `json:"runbook"` // the anchor of its entry
	Values  map[string]any `json:"values,omitempty"`
}

// The kinds of warnings, and their entries in the runbook.
var runbook = map[string]string{
	"redis_unreachable": "headcountcannotwrite",
	"redis_full":        "headcountpasseswithoutlease",
	"redis_nearly_full": "headcountpasseswithoutlease",
	"eviction_policy":   "redis-drops-viewers",
	"no_complete_pass":  "headcountnocompletepass",
	"no_leader":         "headcountnoleader",
	"partial_pass":      "headcountpartialpasses",
	"pass_too_long":     "headcountpassestoolong",
	"queue_nearly_full": "headcountqueuenearlyfull",
	"plays_fail":        "headcountrecorderrors",
	"lookups_stale":     "headcountlookupsstale",
	"statistics_fail":   "headcountstatisticserrors",
	"config_refused":    "headcountconfigrefused",
}

func warn(kind string, values map[string]any) warning {
	return warning{kind, runbook[kind], values}
}

// From when on something is worth a warning.
const (
	full       = 0.999 // of maxmemory: Redis refuses what needs more
	nearlyFull = 0.9
	queueHigh  = 0.8
	failing    = 0.05 // of plays
	stale      = 0.5  // of lookups

	intervals = 3               // without a complete pass
	grace     = 5 * time.Second // for a worker that takes over, or a program that has just started
)

func (c *Console) warnings(s *site) []warning {
	all := append(redisWarnings(&s.Redis), c.passWarnings(s)...)
	all = append(all, rateWarnings(s.Rates)...)
	all = append(all, c.statisticsWarnings(s)...)
	if successful, known := s.metrics.values[metricReload]; known && successful == 0 {
		all = append(all, warn("config_refused", nil))
	}
	return append([]warning{}, all...) // [], and not null, in JSON
}

func redisWarnings(r *redisState) (all []warning) {
	if r.Error != "" {
		all = append(all, warn("redis_unreachable", map[string]any{"master": "", "error": r.Error}))
	}
	for i := range r.Masters {
		m := &r.Masters[i]
		values := map[string]any{"master": m.Addr}
		if m.Error != "" {
			values["error"] = m.Error
			all = append(all, warn("redis_unreachable", values))
			continue
		}
		if m.drops() {
			all = append(all, warn("eviction_policy", map[string]any{"master": m.Addr, "policy": m.DropPolicy}))
		}
		if fill := m.fill(); fill >= nearlyFull {
			values["fill"] = fill
			kind := "redis_nearly_full"
			if fill >= full {
				kind = "redis_full"
			}
			all = append(all, warn(kind, values))
		}
	}
	return all
}

// passWarnings says nothing while Redis does not: nobody knows then.
func (c *Console) passWarnings(s *site) (all []warning) {
	if s.Now == nil || s.Passes.Failed {
		return nil
	}
	now, interval := time.UnixMilli(*s.Now), c.o.Interval()
	overdue := func(last time.Time, after time.Duration) bool {
		if last.IsZero() {
			return time.Since(c.began) > after
		}
		return now.Sub(last) > after
	}
	var last lastpass.Pass
	if len(s.record.Recent) > 0 {
		last = s.record.Recent[0]
	}
	took := time.Duration(last.TookMS) * time.Millisecond
	if overdue(s.record.CompletedAt, intervals*interval+took+grace) {
		all = append(all, warn("no_complete_pass", map[string]any{"since": millis(s.record.CompletedAt)}))
	}
	held := s.Leader.Held == nil || *s.Leader.Held
	if !held && overdue(seconds(last.StartedAt), interval+took+grace) {
		all = append(all, warn("no_leader", nil))
	}
	if last.Errors > 0 {
		all = append(all, warn("partial_pass", map[string]any{"errors": last.Errors}))
	}
	if took > interval {
		all = append(all, warn("pass_too_long", map[string]any{"took_ms": last.TookMS, "interval_ms": interval.Milliseconds()}))
	}
	return all
}

func seconds(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}

func rateWarnings(r *rates) (all []warning) {
	if r == nil {
		return nil
	}
	if q := r.Queue; q != nil && float64(q.Length) > queueHigh*float64(q.Limit) {
		all = append(all, warn("queue_nearly_full", map[string]any{"length": q.Length, "limit": q.Limit}))
	}
	if part := share(r.Plays, r.Seconds, []string{"busy", "failed"}); part > failing {
		all = append(all, warn("plays_fail", map[string]any{"share": part}))
	}
	// What memory answers is left out: it repeats the others.
	if part := share(r.Lookups, r.Seconds, []string{"stale"}, "cached", "rejected"); part > stale {
		all = append(all, warn("lookups_stale", map[string]any{"share": part}))
	}
	return all
}
