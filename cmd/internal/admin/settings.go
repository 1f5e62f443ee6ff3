package admin

import (
	"strings"

	"headcount/console"
	"headcount/internal/config"
)

// settings are what an operator asks first, of what the program reads. None is a secret.
func settings(program string, c config.Config) []console.Setting {
	kinds := strings.Join(c.Kinds, ", ")
	all := []console.Setting{
		{Name: "kinds", Value: unlessZero(kinds, kinds)},
		{Name: "window", Value: config.Short(c.Window)},
		{Name: "key_ttl", Value: config.Short(c.KeyTTL)},
		{Name: "count_ttl", Value: config.Short(c.CountTTL)},
		{Name: "redis.mode", Value: c.Redis.Mode},
		{Name: "redis.tls", Value: c.Redis.TLS},
		{Name: "stats.online", Value: c.Stats.Online},
		{Name: "stats.uniques", Value: c.Stats.Uniques},
		{Name: "stats.plays", Value: c.Stats.Plays},
		{Name: "stats.peaks", Value: c.Stats.Peaks},
		{Name: "stats.top", Value: unlessZero(c.Stats.Top, c.Stats.Top)},
		{Name: "stats.history", Value: unlessZero(c.Stats.History, config.Short(c.Stats.History))},
		{Name: "stats.time_zone", Value: c.Stats.TimeZone},
		{Name: "worker.interval", Value: config.Short(c.Worker.Interval)},
	}
	if program != "recorder" {
		all = append(all, console.Setting{Name: "lease.ttl", Value: config.Short(c.Lease.TTL)})
	}
	if program == "worker" {
		return all
	}
	return append(all, []console.Setting{
		{Name: "recorder.beat_after", Value: config.Short(c.BeatAfter())},
		{Name: "recorder.rate_limit", Value: unlessZero(c.Recorder.RateLimit, c.Recorder.RateLimit)},
		{Name: "recorder.max_connections", Value: unlessZero(c.Recorder.MaxConnections, c.Recorder.MaxConnections)},
		{Name: "recorder.max_viewers", Value: unlessZero(c.Recorder.MaxViewers, c.Recorder.MaxViewers)},
		{Name: "auth.play_keys", Value: len(c.Auth.PlayKeys) > 0 || c.Auth.PlayKeysFile != ""},
		{Name: "lookup.on_miss", Value: c.Lookup.OnMiss},
		{Name: "web.demo", Value: c.Web.Demo},
	}...)
}

// unlessZero is how a number is shown that is off at 0.
func unlessZero[T comparable](n T, shown any) any {
	var zero T
	if n == zero {
		return false
	}
	return shown
}
