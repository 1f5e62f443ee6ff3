package config

import (
	"strings"
	"testing"
)

func TestLoadFlagMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want string // one line a mistake
	}{
		{"misspelled", []string{"--windw=5m"}, "--windw: unknown flag, did you mean --window?"},
		{"group left out", []string{"--interval=5s"}, "--interval: unknown flag, did you mean --worker.interval?"},
		{"nothing near", []string{"--colour=blue"}, "--colour: unknown flag"},
		{"unprintable", []string{"--a\nb=1"}, `"--a\nb": unknown flag`},
		{"one dash", []string{"-redis.password=hunter2"}, "unknown flag with one dash; settings have two, such as --window 10m"},
		{"no name", []string{"--=hunter2"}, "a flag without a name; write it as in --window 10m"},
		{"no value", []string{"--redis.password"}, "flag needs an argument: --redis.password"},
		{"an argument", []string{"--redis.password=", "hunter2"}, "arguments that are no flags; true and false need an equals sign, as in --redis.tls=false"},
		{"bool without equals", []string{"--redis.tls", "false"}, "arguments that are no flags; true and false need an equals sign, as in --redis.tls=false"},
		{"duration without unit", []string{"--window", "5"}, "--window: window: 5 has no unit; write 5s, 5m or 5h"},
		{"number", []string{"--redis.db=one"}, `--redis.db: redis.db: "one" is not a whole number`},
		{"bool", []string{"--redis.tls=yes"}, `--redis.tls: redis.tls: "yes" is neither true nor false`},
		{"enum", []string{"--redis.mode=x"}, `--redis.mode: redis.mode: "x" is none of single, sentinel, cluster`},
		{"relation", []string{"--window=10m", "--recorder.beat_after=6m"}, "--recorder.beat_after, --window: recorder.beat_after 6m is more than half of window 10m: one lost beat would drop a viewer"},
		{"path empty", []string{"--config="}, "--config: names no file"},
		{"several", []string{"--window=5", "--redis.db=x", "--prefix="}, "--window: window: 5 has no unit; write 5s, 5m or 5h\n--redis.db: redis.db: \"x\" is not a whole number\n--prefix: prefix: is empty"},
	} {
		_, err := Load(options(tt.args...))
		if got := message(err); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestLoadMistakesInEverySource(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 20m\nlog: {level: loud}\nredis: {db: x}\n")
	o := options("--config", path, "--lease.ttl=1")
	o.Environ = []string{"HEADCOUNT_KEY_TTL=20m", "HEADCOUNT_COUNT_TTL=30m", "HEADCOUNT_LOOKUP_CACHE=x"}
	want := strings.Join([]string{
		path + ":3: redis.db: want a whole number, without quotes",
		`HEADCOUNT_LOOKUP_CACHE: lookup.cache: "x" is not a duration such as 500ms, 30s, 10m or 1h30m`,
		"--lease.ttl: lease.ttl: 1 has no unit; write 1s, 1m or 1h",
		path + `:2: log.level: "loud" is none of debug, info, warn, error`,
		"HEADCOUNT_KEY_TTL, " + path + ":1: key_ttl 20m is less than 1.5 x window 20m",
	}, "\n")
	_, err := Load(o)
	if got := message(err); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A value that is outweighed is still read: a mistake that shows only once a flag is gone is found now.
func TestLoadMistakeThatIsOutweighed(t *testing.T) {
	t.Parallel()
	o := options("--window=5m")
	o.Environ = []string{"HEADCOUNT_WINDOW=5"}
	_, err := Load(o)
	if got, want := message(err), "HEADCOUNT_WINDOW: window: 5 has no unit; write 5s, 5m or 5h"; got != want {
		t.Errorf("got error %q, want %q", got, want)
	}
}

func TestBoolFlag(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]bool{"--redis.tls": true, "--redis.tls=true": true, "--redis.tls=false": false} {
		if got := load(t, options(arg)).Redis.TLS; got != want {
			t.Errorf("%s: tls = %v, want %v", arg, got, want)
		}
	}
}

// The value below one that could not be read is nobody's wish, so it is not checked in its place.
func TestLoadUnreadableOverInvalid(t *testing.T) {
	t.Parallel()
	o := options("--config", writeFile(t, "window: 0s\n"))
	o.Environ = []string{"HEADCOUNT_WINDOW=5"}
	_, err := Load(o)
	if got, want := message(err), "HEADCOUNT_WINDOW: window: 5 has no unit; write 5s, 5m or 5h"; got != want {
		t.Errorf("got error %q, want %q", got, want)
	}
}
