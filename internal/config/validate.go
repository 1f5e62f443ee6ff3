package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Validate returns every value that is out of range and every relation between two keys that does not hold, joined, one
// line each. Each line names its keys and, but for secrets, their values.
func (c Config) Validate() error {
	var errs []error
	for _, p := range c.problems(nil) {
		errs = append(errs, p.at(nil))
	}
	return errors.Join(errs...)
}

// A problem is a mistake in one key, or a contradiction between two.
type problem struct {
	keys []string
	text string
}

// at words the problem, preceded by where its keys were set. origins is by key; a key that is not in it has its default.
func (p problem) at(origins map[string]string) error {
	var where []string
	for _, k := range p.keys {
		if origin, ok := origins[k]; ok {
			where = append(where, origin)
		}
	}
	if where == nil {
		return errors.New(p.text)
	}
	return fmt.Errorf("%s: %s", strings.Join(where, ", "), p.text)
}

// problems checks c. Keys in unread have been reported before: they hold a value that nobody wrote.
func (c Config) problems(unread map[string]bool) []problem {
	r := report{unread: unread, refused: map[string]bool{}}
	c.checkCounting(&r)
	c.checkRedis(&r)
	c.checkServices(&r)
	c.checkRelations(&r)
	return r.problems
}

// Upper limits only catch slips such as 10h for 10m times ten; they are far from what Redis can hold.
const (
	longestWindow = 24 * time.Hour
	longestTTL    = 7 * 24 * time.Hour
)

func (c Config) checkCounting(r *report) {
	r.prefix("prefix", c.Prefix)
	r.kinds("kinds", c.Kinds)
	r.seconds("window", c.Window, longestWindow)
	r.seconds("key_ttl", c.KeyTTL, longestTTL)
	r.seconds("count_ttl", c.CountTTL, longestTTL)
}

func (c Config) checkRedis(r *report) {
	r.oneOf("redis.mode", c.Redis.Mode, "single", "sentinel", "cluster")
	if len(c.Redis.Addrs) == 0 {
		r.refuse("redis.addrs", "has no address")
	}
	for i, addr := range c.Redis.Addrs {
		r.server("redis.addrs", i+1, addr)
	}
	r.number("redis.db", c.Redis.DB, 0, math.MaxInt)
	r.between("redis.timeout", c.Redis.Timeout, time.Millisecond, 10*time.Second)
}

func (c Config) checkServices(r *report) {
	r.listen("recorder.listen", c.Recorder.Listen)
	r.listen("recorder.admin_listen", c.Recorder.AdminListen)
	if c.Recorder.BeatAfter != 0 {
		r.seconds("recorder.beat_after", c.Recorder.BeatAfter, longestWindow)
	}
	for _, origin := range c.Recorder.CORSOrigins {
		r.origin("recorder.cors_origins", origin)
	}
	c.checkLimits(r)
	r.between("worker.interval", c.Worker.Interval, 10*time.Millisecond, longestWindow)
	r.listen("worker.admin_listen", c.Worker.AdminListen)
	r.between("lease.ttl", c.Lease.TTL, 300*time.Millisecond, time.Hour)
	r.between("lookup.cache", c.Lookup.Cache, 0, time.Minute)
	r.oneOf("lookup.on_miss", c.Lookup.OnMiss, "compute", "zero")
	c.checkStats(r)
	r.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	r.oneOf("log.format", c.Log.Format, "json", "console")
}

// Upper limits, again, are for slips; mostAtOnce is far from what one process can serve or Redis can hold in a hash.
const mostAtOnce = 10_000_000

func (c Config) checkLimits(r *report) {
	r.number("recorder.rate_limit", c.Recorder.RateLimit, 0, mostAtOnce)
	r.number("recorder.rate_burst", c.Recorder.RateBurst, 1, mostAtOnce)
	for _, proxy := range c.Recorder.TrustedProxies {
		if _, err := network(proxy); err != nil {
			r.refuse("recorder.trusted_proxies", "%s %s", quote(proxy), err)
		}
	}
	r.number("recorder.max_connections", c.Recorder.MaxConnections, 0, mostAtOnce)
	r.between("recorder.drain", c.Recorder.Drain, 0, time.Minute)
	r.number("recorder.max_viewers", c.Recorder.MaxViewers, 0, mostAtOnce)
}

// mostTop is as many videos as Redis replaces within a few milliseconds.
const mostTop = 10_000

func (c Config) checkStats(r *report) {
	r.number("stats.top", c.Stats.Top, 0, mostTop)
	if c.Stats.History != 0 {
		r.seconds("stats.history", c.Stats.History, longestTTL)
	}
	if _, err := location(c.Stats.TimeZone); err != nil {
		r.refuse("stats.time_zone", "%s %s", quote(c.Stats.TimeZone), err)
	}
}

func (c Config) checkRelations(r *report) {
	window, interval, beat := Short(c.Window), Short(c.Worker.Interval), c.Recorder.BeatAfter
	r.relate(c.KeyTTL >= c.Window+c.Window/2, "key_ttl", "window",
		"key_ttl %s is less than 1.5 x window %s", Short(c.KeyTTL), window)
	r.relate(c.CountTTL > c.Window, "count_ttl", "window",
		"count_ttl %s is not more than window %s", Short(c.CountTTL), window)
	r.relate(c.CountTTL > c.Worker.Interval, "count_ttl", "worker.interval",
		"count_ttl %s is not more than worker.interval %s", Short(c.CountTTL), interval)
	r.relate(c.Stats.History == 0 || c.Stats.History > c.Worker.Interval, "stats.history", "worker.interval",
		"stats.history %s is not more than worker.interval %s", Short(c.Stats.History), interval)
	r.relate(2*beat <= c.Window, "recorder.beat_after", "window",
		"recorder.beat_after %s is more than half of window %s: one lost beat would drop a viewer", Short(beat), window)
	r.relate(c.Redis.Timeout < c.Lease.TTL, "redis.timeout", "lease.ttl",
		"redis.timeout %s is not less than lease.ttl %s", Short(c.Redis.Timeout), Short(c.Lease.TTL))
	r.relate(!sameAddress(c.Recorder.Listen, c.Recorder.AdminListen), "recorder.listen", "recorder.admin_listen",
		"recorder.listen %s and recorder.admin_listen %s are one address", quote(c.Recorder.Listen), quote(c.Recorder.AdminListen))
	r.relate(c.Redis.Mode != "single" || len(c.Redis.Addrs) == 1, "redis.mode", "redis.addrs",
		`redis.mode "single" has one address, redis.addrs has %d`, len(c.Redis.Addrs))
	r.relate(c.Redis.Mode != "sentinel" || c.Redis.MasterName != "", "redis.mode", "redis.master_name",
		`redis.mode "sentinel" needs redis.master_name, which is empty`)
	r.relate(c.Redis.Mode == "sentinel" || c.Redis.MasterName == "", "redis.mode", "redis.master_name",
		"redis.mode %s has no use for redis.master_name %s", quote(c.Redis.Mode), quote(c.Redis.MasterName))
	r.relate(c.Redis.Mode != "cluster" || c.Redis.DB == 0, "redis.mode", "redis.db",
		`redis.mode "cluster" has only redis.db 0, not %d`, c.Redis.DB)
	r.relate(len(c.Kinds) == 0 || c.Prefix == Default().Prefix, "kinds", "prefix",
		"kinds %s have prefixes of their own names, so there is no use for prefix %s", quote(strings.Join(c.Kinds, ", ")), quote(c.Prefix))
	c.checkTLS(r)
}

func (c Config) checkTLS(r *report) {
	r.relate(c.Redis.TLS || c.Redis.TLSCAFile == "", "redis.tls", "redis.tls_ca_file",
		"redis.tls_ca_file is set, but redis.tls is false")
	r.relate(c.Redis.TLS || c.Redis.TLSCertFile == "", "redis.tls", "redis.tls_cert_file",
		"redis.tls_cert_file is set, but redis.tls is false")
	r.relate((c.Redis.TLSCertFile == "") == (c.Redis.TLSKeyFile == ""), "redis.tls_cert_file", "redis.tls_key_file",
		"redis.tls_cert_file and redis.tls_key_file belong together, and only one of them is set")
}

// A report collects problems.
type report struct {
	unread   map[string]bool // not checked at all
	refused  map[string]bool // no longer compared with others: the outcome would only confuse
	problems []problem
}

func (r *report) refuse(key, format string, args ...any) {
	if r.unread[key] {
		return
	}
	r.refused[key] = true
	r.problems = append(r.problems, problem{[]string{key}, key + ": " + fmt.Sprintf(format, args...)})
}

func (r *report) relate(ok bool, a, b, format string, args ...any) {
	if ok || r.unread[a] || r.unread[b] || r.refused[a] || r.refused[b] {
		return
	}
	r.problems = append(r.problems, problem{[]string{a, b}, fmt.Sprintf(format, args...)})
}

func (r *report) between(key string, d, least, most time.Duration) {
	if d < least {
		r.refuse(key, "%s is less than %s", Short(d), Short(least))
	} else if d > most {
		r.refuse(key, "%s is more than %s", Short(d), Short(most))
	}
}

func (r *report) number(key string, n, least, most int) {
	if n < least {
		r.refuse(key, "%d is less than %d", n, least)
	} else if n > most {
		r.refuse(key, "%d is more than %d", n, most)
	}
}

// seconds checks a duration that Redis or a player is told in whole seconds.
func (r *report) seconds(key string, d, most time.Duration) {
	if d%time.Second != 0 {
		r.refuse(key, "%s is not in whole seconds", Short(d))
		return
	}
	r.between(key, d, time.Second, most)
}

func (r *report) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		r.refuse(key, "%s is none of %s", quote(value), strings.Join(allowed, ", "))
	}
}

func (r *report) prefix(key, value string) {
	switch {
	case value == "":
		r.refuse(key, "is empty")
	case len(value) > 64:
		r.refuse(key, "has %d bytes, more than 64", len(value))
	case !utf8.ValidString(value):
		r.refuse(key, "%s is not UTF-8", quote(value))
	case strings.ContainsFunc(value, unicode.IsControl):
		r.refuse(key, "%s contains a control character", quote(value))
	case strings.ContainsAny(value, "{}"):
		r.refuse(key, "%s contains a brace, which would send every key to one node of a cluster", quote(value))
	case strings.HasSuffix(value, ":"):
		r.refuse(key, "%s ends in a colon, which is added anyway", quote(value))
	}
}

// server checks the nth address of a Redis server. One that may hold a password is not repeated.
func (r *report) server(key string, n int, addr string) {
	if strings.ContainsAny(addr, "@=") || strings.Contains(addr, "://") {
		r.refuse(key, "address %d is more than host:port; user and password have keys of their own", n)
		return
	}
	host, port, err := splitAddress(addr)
	switch {
	case err != nil:
		r.refuse(key, "%s is not host:port", quote(addr))
	case host == "":
		r.refuse(key, "%s has no host", quote(addr))
	case port == 0:
		r.refuse(key, "%s has port 0", quote(addr))
	}
}

func (r *report) listen(key, addr string) {
	if _, _, err := splitAddress(addr); err != nil {
		r.refuse(key, "%s is not host:port or :port", quote(addr))
	}
}

func (r *report) origin(key, origin string) {
	if origin == "*" {
		return
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
		r.refuse(key, `%s is not an origin such as "https://example.org", nor "*"`, quote(origin))
	}
}

// splitAddress takes host:port apart; host may be empty, port is a number.
func splitAddress(addr string) (host string, port uint16, err error) {
	host, digits, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	if strings.ContainsFunc(host, func(c rune) bool { return c == '/' || unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return "", 0, fmt.Errorf("host %q is no name", host)
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return host, uint16(n), err
}

// sameAddress says whether two servers could not both listen: one port, and one host or one of them on every host.
// Port 0 is a free port each time.
func sameAddress(a, b string) bool {
	hostA, portA, errA := splitAddress(a)
	hostB, portB, errB := splitAddress(b)
	if errA != nil || errB != nil || portA != portB || portA == 0 {
		return false
	}
	return hostA == hostB || everyHost(hostA) || everyHost(hostB)
}

func everyHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
