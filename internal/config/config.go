// Package config reads the settings of the headcount programs: flags over HEADCOUNT_ environment variables over one
// YAML file over defaults. It is strict, so that a mistake stops the start instead of running with a guess: every
// unknown name, value without a unit and contradiction is reported, one line each, with where it was found.
//
// Window, worker.interval, recorder.beat_after and log.level change while a program runs, see [Source.Watch].
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones, also where the system has none
)

// Config holds every setting. The mapstructure tags are the key names; a group and a name joined with a dot
// ("redis.addrs") are the key that flags and errors use.
type Config struct {
	// Prefix begins every Redis key.
	Prefix string `mapstructure:"prefix"`
	// Window is how long after a beat a viewer still counts as online, in whole seconds.
	Window time.Duration `mapstructure:"window"`
	// KeyTTL is the expiry of a video's hash, renewed by every write, in whole seconds.
	KeyTTL time.Duration `mapstructure:"key_ttl"`
	// CountTTL is the expiry of a published count, in whole seconds.
	CountTTL time.Duration `mapstructure:"count_ttl"`
	// Kinds are counted side by side, each under a prefix of its own name. None is the usual case, one kind under Prefix:
	// read them with [Config.Prefixes].
	Kinds []string `mapstructure:"kinds"`

	Redis    Redis    `mapstructure:"redis"`
	Recorder Recorder `mapstructure:"recorder"`
	Auth     Auth     `mapstructure:"auth"`
	Worker   Worker   `mapstructure:"worker"`
	Lease    Lease    `mapstructure:"lease"`
	Lookup   Lookup   `mapstructure:"lookup"`
	Stats    Stats    `mapstructure:"stats"`
	Web      Web      `mapstructure:"web"`
	Log      Log      `mapstructure:"log"`
}

// Redis says how to reach Redis.
type Redis struct {
	// Mode is "single", "sentinel" or "cluster".
	Mode string `mapstructure:"mode"`
	// Addrs are host:port: the server, the sentinels, or some nodes of the cluster.
	Addrs []string `mapstructure:"addrs"`
	// MasterName is the name the sentinels know the master by; only for mode sentinel.
	MasterName string `mapstructure:"master_name"`
	// Username and Password log in; empty means without.
	Username string `mapstructure:"username"`
	Password string `mapstructure:"password"`
	// DB is the database's number; a cluster has only 0.
	DB int `mapstructure:"db"`
	// TLS encrypts the connections.
	TLS bool `mapstructure:"tls"`
	// TLSCAFile is the PEM file of the authority that signed the servers' certificates; empty means the system's.
	TLSCAFile string `mapstructure:"tls_ca_file"`
	// TLSCertFile and TLSKeyFile are the PEM files of our own certificate and its key; empty means without.
	TLSCertFile string `mapstructure:"tls_cert_file"`
	TLSKeyFile  string `mapstructure:"tls_key_file"`
	// Timeout is the deadline of every command.
	Timeout time.Duration `mapstructure:"timeout"`
}

// Recorder configures the public HTTP service.
type Recorder struct {
	// Listen is the public address, AdminListen that of health, metrics and profiles.
	Listen      string `mapstructure:"listen"`
	AdminListen string `mapstructure:"admin_listen"`
	// BeatAfter is how long after a play a player beats again, in whole seconds. Zero means a quarter of the
	// window: read it with [Config.BeatAfter].
	BeatAfter time.Duration `mapstructure:"beat_after"`
	// CORSOrigins are the origins whose pages may call the public routes; "*" is every origin, empty is none.
	CORSOrigins []string `mapstructure:"cors_origins"`
	// RateLimit is how many plays and leaves a client address may send per second, RateBurst how many at once. A
	// RateLimit of 0 lets everything pass.
	RateLimit int `mapstructure:"rate_limit"`
	RateBurst int `mapstructure:"rate_burst"`
	// TrustedProxies are the addresses and networks whose word is taken for a client's address: read them with
	// [Config.TrustedProxies].
	TrustedProxies []string `mapstructure:"trusted_proxies"`
	// MaxConnections is how many public connections may be open; 0 is any number.
	MaxConnections int `mapstructure:"max_connections"`
	// Drain is how long the recorder still answers after it was told to stop, while it is no longer ready.
	Drain time.Duration `mapstructure:"drain"`
	// MaxViewers is how many distinct viewers a video may have; 0 is any number.
	MaxViewers int `mapstructure:"max_viewers"`
}

// Auth configures who may play and leave.
type Auth struct {
	// PlayKeys verify play tokens: each is kid:HS256:<base64> or kid:EdDSA:<base64>. Without a key here or in the file
	// nobody needs a token.
	PlayKeys []string `mapstructure:"play_keys"`
	// PlayKeysFile is the path of a file with one more key on each line; empty is none.
	PlayKeysFile string `mapstructure:"play_keys_file"`
}

// Worker configures the scheduled passes.
type Worker struct {
	// Interval is the pause between the end of a pass and the start of the next.
	Interval time.Duration `mapstructure:"interval"`
	// AdminListen is the address of health, metrics and profiles.
	AdminListen string `mapstructure:"admin_listen"`
}

// Lease configures the lock that keeps all workers but one waiting.
type Lease struct {
	// TTL is how long a killed holder keeps the others out.
	TTL time.Duration `mapstructure:"ttl"`
}

// Lookup configures the reading of counts.
type Lookup struct {
	// Cache is how long a count is answered from memory; zero asks Redis every time.
	Cache time.Duration `mapstructure:"cache"`
	// OnMiss is "compute" (count that one video) or "zero" (answer 0) for a video without a count.
	OnMiss string `mapstructure:"on_miss"`
}

// Stats says which statistics are kept. One that is off costs nothing.
type Stats struct {
	// Online keeps who is on the site, Uniques how many watched in an hour, Plays how often a video was started, Peaks
	// the largest counts.
	Online  bool `mapstructure:"online"`
	Uniques bool `mapstructure:"uniques"`
	Plays   bool `mapstructure:"plays"`
	Peaks   bool `mapstructure:"peaks"`
	// Top is how many of the largest videos are listed; 0 is off.
	Top int `mapstructure:"top"`
	// History is how long counts are kept, in whole seconds; 0 is off.
	History time.Duration `mapstructure:"history"`
	// TimeZone is where hours and days begin, such as "Asia/Shanghai": read it with [Config.Location].
	TimeZone string `mapstructure:"time_zone"`
}

// Web configures what the recorder serves to browsers besides the API.
type Web struct {
	// Demo serves the demo at /.
	Demo bool `mapstructure:"demo"`
}

// Log configures the log.
type Log struct {
	// Level is "debug", "info", "warn" or "error".
	Level string `mapstructure:"level"`
	// Format is "json" or "console".
	Format string `mapstructure:"format"`
}

// Default returns the settings in force where nothing else is said.
func Default() Config {
	return Config{
		Prefix:   "video",
		Kinds:    []string{},
		Window:   10 * time.Minute,
		KeyTTL:   15 * time.Minute,
		CountTTL: 12 * time.Minute,
		Redis:    Redis{Mode: "single", Addrs: []string{"127.0.0.1:6379"}, Timeout: 500 * time.Millisecond},
		Recorder: Recorder{
			Listen: ":8080", AdminListen: "127.0.0.1:9090", CORSOrigins: []string{"*"},
			RateLimit: 500, RateBurst: 2000, TrustedProxies: []string{}, MaxConnections: 10_000,
			Drain: 3 * time.Second,
		},
		Auth:   Auth{PlayKeys: []string{}},
		Worker: Worker{Interval: 30 * time.Second, AdminListen: "127.0.0.1:9091"},
		Lease:  Lease{TTL: 15 * time.Second},
		Lookup: Lookup{Cache: time.Second, OnMiss: "compute"},
		Stats: Stats{
			Online: true, Uniques: true, Plays: true, Peaks: true,
			Top: 1000, History: 24 * time.Hour, TimeZone: "UTC",
		},
		Log: Log{Level: "info", Format: "json"},
	}
}

// Prefixes are those of all kinds, the first kind's first.
func (c Config) Prefixes() []string {
	if len(c.Kinds) == 0 {
		return []string{c.Prefix}
	}
	return c.Kinds
}

// BeatAfter is how long after a play a player beats again: recorder.beat_after, or a quarter of the window when that
// is 0, so that a window changed alone stays consistent.
func (c Config) BeatAfter() time.Duration {
	if c.Recorder.BeatAfter > 0 {
		return c.Recorder.BeatAfter
	}
	return c.Window / 4
}

// Location is stats.time_zone.
func (c Config) Location() *time.Location {
	zone, err := location(c.Stats.TimeZone)
	if err != nil {
		return time.UTC // unreachable: checked when it was read
	}
	return zone
}

// location reads the name of a time zone. Its errors are to follow the name.
func location(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // which Go takes for UTC, and for whatever the machine has
		return nil, errors.New("is no time zone such as UTC or Asia/Shanghai")
	}
	return zone, nil
}

// TrustedProxies are recorder.trusted_proxies; a single address is a network of its own.
func (c Config) TrustedProxies() []netip.Prefix {
	var proxies []netip.Prefix
	for _, text := range c.Recorder.TrustedProxies {
		if p, err := network(text); err == nil { // checked when it was read
			proxies = append(proxies, p)
		}
	}
	return proxies
}

// network reads an address, or a network such as 10.0.0.0/8. Its errors are to follow the text.
func network(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return p, errors.New("is neither an address nor a network such as 10.0.0.0/8")
	case p.Addr().Is4In6():
		return p, errors.New("is IPv4 in the form of IPv6; write it as IPv4")
	case p.Bits() == 0:
		return p, errors.New("is everybody: any client could claim any address")
	case p != p.Masked():
		return p, fmt.Errorf("goes beyond its network; write %s", p.Masked())
	}
	return p, nil
}

// secret says whether the value of a key is one: no error and no output may show it.
func secret(name string) bool { return name == "redis.password" || name == "auth.play_keys" }

// hide returns a secret's value as it may be shown: whether there is one, and in a list how many.
func hide(value any) any {
	const hidden = "***"
	switch v := value.(type) {
	case []string:
		return slices.Repeat([]string{hidden}, len(v))
	case string:
		if v == "" {
			return v
		}
	}
	return hidden
}

// A key is one setting: its name, e.g. "redis.addrs", and its value in some Config.
type key struct {
	name  string
	value any
}

// keys lists every key of c in the order of the fields. Flags, variables and the file's names are all generated from it.
func keys(c Config) []key { return fieldKeys(reflect.ValueOf(c), "") }

func fieldKeys(v reflect.Value, group string) []key {
	var list []key
	for i := range v.NumField() {
		name := group + v.Type().Field(i).Tag.Get("mapstructure")
		if field := v.Field(i); field.Kind() == reflect.Struct {
			list = append(list, fieldKeys(field, name+".")...)
		} else {
			list = append(list, key{name, field.Interface()})
		}
	}
	return list
}

// changed names the keys in which two configurations differ.
func changed(a, b Config) []string {
	var names []string
	old := keys(a)
	for i, k := range keys(b) {
		if !reflect.DeepEqual(old[i].value, k.value) {
			names = append(names, k.name)
		}
	}
	return names
}

// Short prints d as people write it: 10m, not 10m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
