package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestValidateDefaults(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

func TestValidateReportsEverything(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Prefix, c.CountTTL, c.Redis.Password = "", c.Window, "hunter2"
	want := "prefix: is empty\ncount_ttl 10m is not more than window 10m"
	if got := message(c.Validate()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if lines := strings.Count(message(Config{}.Validate()), "\n") + 1; lines < 10 {
		t.Errorf("the zero Config has %d mistakes, want one for every required key", lines)
	}
}

// The values at the edges of the relations and ranges; the testdata has those just beyond.
func TestValidateEdges(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Config){
		"key_ttl is 1.5 x window":            func(c *Config) { c.KeyTTL = 15 * time.Minute },
		"key_ttl of an odd window":           func(c *Config) { c.Window, c.KeyTTL = 3*time.Second, 5*time.Second },
		"count_ttl just over window":         func(c *Config) { c.CountTTL = c.Window + time.Second },
		"interval just under count_ttl":      func(c *Config) { c.Worker.Interval = c.CountTTL - time.Millisecond },
		"beat_after is half of window":       func(c *Config) { c.Recorder.BeatAfter = c.Window / 2 },
		"timeout just under lease":           func(c *Config) { c.Redis.Timeout, c.Lease.TTL = 999*time.Millisecond, time.Second },
		"shortest window":                    func(c *Config) { c.Window = time.Second },
		"longest window":                     func(c *Config) { c.Window, c.KeyTTL, c.CountTTL = longestWindow, longestTTL, longestTTL },
		"both listeners on a free port":      func(c *Config) { c.Recorder.Listen, c.Recorder.AdminListen = "127.0.0.1:0", "127.0.0.1:0" },
		"one port on two hosts":              func(c *Config) { c.Recorder.Listen, c.Recorder.AdminListen = "127.0.0.1:80", "127.0.0.2:80" },
		"IPv6":                               func(c *Config) { c.Recorder.Listen, c.Redis.Addrs = "[::]:80", []string{"[::1]:6379"} },
		"prefix of 64 bytes":                 func(c *Config) { c.Prefix = strings.Repeat("x", 64) },
		"prefix of words and glob":           func(c *Config) { c.Prefix = "vidéo:[a b]*" },
		"cluster of several":                 func(c *Config) { c.Redis.Mode, c.Redis.Addrs = "cluster", []string{"a:1", "b:1"} },
		"sentinel with a database":           func(c *Config) { c.Redis.Mode, c.Redis.MasterName, c.Redis.DB = "sentinel", "main", 3 },
		"no origins":                         func(c *Config) { c.Recorder.CORSOrigins = nil },
		"origin of an app":                   func(c *Config) { c.Recorder.CORSOrigins = []string{"capacitor://localhost"} },
		"a lookup that asks Redis each time": func(c *Config) { c.Lookup.Cache = 0 },
		"no limits":                          func(c *Config) { c.Recorder.RateLimit, c.Recorder.MaxConnections, c.Recorder.MaxViewers = 0, 0, 0 },
		"the tightest limits": func(c *Config) {
			c.Recorder.RateLimit, c.Recorder.RateBurst, c.Recorder.MaxConnections, c.Recorder.MaxViewers = 1, 1, 1, 1
		},
		"proxies": func(c *Config) {
			c.Recorder.TrustedProxies = []string{"10.0.0.1", "10.0.0.0/8", "::1", "fd00::/8", "::ffff:10.0.0.1", "128.0.0.0/1"}
		},
	} {
		c := Default()
		edit(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSameAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{":80", ":80", true},
		{":80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "0.0.0.0:80", true},
		{"[::]:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.1:080", true},
		{":80", ":81", false},
		{"a:80", "b:80", false},
		{":0", ":0", false},
	} {
		if got := sameAddress(tt.a, tt.b); got != tt.want {
			t.Errorf("sameAddress(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	c := Default()
	if got := c.TrustedProxies(); len(got) != 0 {
		t.Errorf("default: got %v, want none", got)
	}
	c.Recorder.TrustedProxies = []string{"192.0.2.1", "10.0.0.0/8", "fd00::1", "::ffff:192.0.2.2"}
	want := "[192.0.2.1/32 10.0.0.0/8 fd00::1/128 192.0.2.2/32]"
	if got := fmt.Sprint(c.TrustedProxies()); got != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestLocation(t *testing.T) {
	t.Parallel()
	c := Default()
	if got := c.Location().String(); got != "UTC" {
		t.Errorf("default: got %s, want UTC", got)
	}
	c.Stats.TimeZone = "Asia/Shanghai"
	if got, want := time.Unix(0, 0).In(c.Location()).Hour(), 8; got != want {
		t.Errorf("in Shanghai the epoch began at %d o'clock, want %d", got, want)
	}
}

func TestBeatAfter(t *testing.T) {
	t.Parallel()
	c := Default()
	if got, want := c.BeatAfter(), 150*time.Second; got != want {
		t.Errorf("unset: got %v, want a quarter of the window, %v", got, want)
	}
	c.Recorder.BeatAfter = 20 * time.Second
	if got, want := c.BeatAfter(), 20*time.Second; got != want {
		t.Errorf("set: got %v, want %v", got, want)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 500 * time.Millisecond: "500ms", 10 * time.Second: "10s", time.Minute: "1m", 10 * time.Minute: "10m",
		90 * time.Second: "1m30s", time.Hour: "1h", 10 * time.Hour: "10h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", -10 * time.Minute: "-10m",
	} {
		if got := Short(d); got != want {
			t.Errorf("Short(%d) = %q, want %q", d, got, want)
		}
	}
}
