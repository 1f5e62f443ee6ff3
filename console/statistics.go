package console

import (
	"slices"
	"strings"
	"time"
)

// statisticsWarnings says nothing while Redis does not answer, which is said already.
func (c *Console) statisticsWarnings(s *site) []warning {
	if s.Now == nil || s.Redis.silent() {
		return nil
	}
	failing := append(s.unread(), s.metrics.unwritten(intervals*c.o.Interval()+grace)...)
	if len(failing) == 0 {
		return nil
	}
	slices.Sort(failing)
	return []warning{warn("statistics_fail", map[string]any{"statistics": strings.Join(slices.Compact(failing), ", ")})}
}

// unread are the settings of the statistics that could not be read.
func (s *site) unread() (settings []string) {
	for setting, failed := range map[string]bool{
		"stats.online":  s.Online.Failed,
		"stats.uniques": s.Uniques.Failed,
		"stats.plays":   s.Plays.Failed,
		"stats.top":     s.Top.Failed,
		"stats.peaks":   s.Peaks.Failed,
		"stats.history": s.History.Failed,
	} {
		if failed {
			settings = append(settings, setting)
		}
	}
	return settings
}

// unwritten are the settings of the statistics that this program last failed to
// write no longer ago than recent.
func (s sample) unwritten(recent time.Duration) (settings []string) {
	for name, value := range s.values {
		statistic, found := strings.CutPrefix(name, metricStats+" ")
		if found && s.at.Sub(time.UnixMilli(int64(value*1000))) <= recent {
			settings = append(settings, "stats."+statistic)
		}
	}
	return settings
}
