package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// options are those of a program started with args and nothing else.
func options(args ...string) Options {
	return Options{Program: "recorder", Version: "v1.2.3", Args: args, Stdout: io.Discard}
}

// load loads what must load.
func load(t *testing.T, o Options) Config {
	t.Helper()
	s, err := Load(o)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return s.Config()
}

// writeFile writes content to a new file config.yaml and returns its path.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no file":          nil,
		"empty file":       {"--config", writeFile(t, "")},
		"comments only":    {"--config", writeFile(t, "# window: 5m\n")},
		"empty document":   {"--config", writeFile(t, "---\n")},
		"empty group":      {"--config", writeFile(t, "redis:\n  # db: 1\n")},
		"reference":        {"--config", "../../config.yaml"},
		"nothing but null": {"--config", writeFile(t, "null\n")},
	} {
		if diff := cmp.Diff(Default(), load(t, options(args...))); diff != "" {
			t.Errorf("%s: config differs from the defaults (-want +got):\n%s", name, diff)
		}
	}
}

func TestReferenceNamesEveryKey(t *testing.T) {
	t.Parallel()
	file, err := readFile("config.yaml", read("../../config.yaml"), keys(Default()))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys(Default()) {
		if _, ok := file.settings[k.name]; !ok {
			t.Errorf("config.yaml does not name %s", k.name)
		}
	}
}

func TestLoadPrecedence(t *testing.T) {
	t.Parallel()
	const file = "redis: {addrs: [\"file:1\"]}\nworker: {interval: 1s}\n"
	for _, tt := range []struct {
		name      string
		file, env bool
		flag      bool
		want      Config
	}{
		{name: "default", want: Config{Redis: Redis{Addrs: []string{"127.0.0.1:6379"}}, Worker: Worker{Interval: 30 * time.Second}}},
		{name: "file", file: true, want: Config{Redis: Redis{Addrs: []string{"file:1"}}, Worker: Worker{Interval: time.Second}}},
		{name: "env", file: true, env: true, want: Config{Redis: Redis{Addrs: []string{"env:1"}}, Worker: Worker{Interval: 2 * time.Second}}},
		{name: "flag", file: true, env: true, flag: true, want: Config{Redis: Redis{Addrs: []string{"flag:1"}}, Worker: Worker{Interval: 3 * time.Second}}},
	} {
		o := options()
		if tt.file {
			o.Environ = append(o.Environ, "HEADCOUNT_CONFIG="+writeFile(t, file))
		}
		if tt.env {
			o.Environ = append(o.Environ, "PATH=/bin", "HEADCOUNT_REDIS_ADDRS=env:1", "HEADCOUNT_WORKER_INTERVAL=2s")
		}
		if tt.flag {
			o.Args = []string{"--redis.addrs", "flag:1", "--worker.interval=3s"}
		}
		got := load(t, o)
		want := Default()
		want.Redis.Addrs, want.Worker = tt.want.Redis.Addrs, Worker{tt.want.Worker.Interval, want.Worker.AdminListen}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestLoadConfigFlagOutweighsVariable(t *testing.T) {
	t.Parallel()
	o := options("--config", writeFile(t, "window: 1m"))
	o.Environ = []string{"HEADCOUNT_CONFIG=" + filepath.Join(t.TempDir(), "absent.yaml")}
	if got := load(t, o).Window; got != time.Minute {
		t.Errorf("window = %v, want that of the flag's file, 1m", got)
	}
}

// everyKey has each key at a value that is not its default, but for kinds, which leave no choice of a prefix.
var everyKey = Config{
	Prefix: "film", Kinds: []string{}, Window: time.Minute, KeyTTL: 2 * time.Minute, CountTTL: 3 * time.Minute,
	Redis: Redis{
		Mode: "sentinel", Addrs: []string{"a:1", "[::1]:2"}, MasterName: "main", Username: "u", Password: "hunter2",
		DB: 3, TLS: true, TLSCAFile: "ca.pem", TLSCertFile: "cert.pem", TLSKeyFile: "key.pem", Timeout: time.Second,
	},
	Recorder: Recorder{
		Listen: ":1", AdminListen: ":2", BeatAfter: 20 * time.Second, CORSOrigins: []string{"https://a.example", "https://*.b.example:8443"},
		RateLimit: 7, RateBurst: 8, TrustedProxies: []string{"10.0.0.0/8", "fd00::1"}, MaxConnections: 9, MaxViewers: 10,
	},
	Auth:   Auth{PlayKeys: []string{"hunter2", "hunter2"}, PlayKeysFile: "keys.txt"},
	Worker: Worker{Interval: 5 * time.Second, AdminListen: ":3"},
	Lease:  Lease{TTL: 6 * time.Second},
	Lookup: Lookup{Cache: 0, OnMiss: "zero"},
	Stats:  Stats{Top: 7, History: time.Hour, TimeZone: "Asia/Shanghai"},
	Web:    Web{Demo: true},
	Log:    Log{Level: "debug", Format: "console"},
}

func TestLoadEveryKeyFromEverySource(t *testing.T) {
	t.Parallel()
	if same := len(keys(everyKey)) - len(changed(Default(), everyKey)); same != 1 {
		t.Fatalf("%d keys have their defaults, want kinds alone: the test would not see them", same)
	}
	var args, environ []string
	for _, k := range keys(everyKey) {
		args = append(args, "--"+k.name+"="+text(k.value))
		environ = append(environ, variable(k.name)+"="+text(k.value))
	}
	env := options()
	env.Environ = environ
	for name, o := range map[string]Options{
		"flags": options(args...),
		"env":   env,
		"file":  options("--config", writeFile(t, strings.ReplaceAll(render(everyKey), "***", "hunter2"))),
	} {
		if diff := cmp.Diff(everyKey, load(t, o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLoadOwnDefaults(t *testing.T) {
	t.Parallel()
	o := options("--window", "30s")
	o.Defaults = everyKey
	want := everyKey
	want.Window = 30 * time.Second
	// 20s would be more than half of the window.
	o.Args = append(o.Args, "--recorder.beat_after=0s")
	want.Recorder.BeatAfter = 0
	if diff := cmp.Diff(want, load(t, o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The program's own checks are reported like ours, and not made where there is nothing to check.
func TestLoadOwnChecks(t *testing.T) {
	t.Parallel()
	listed := func(c Config) (errs []error) {
		for i := range c.Auth.PlayKeys {
			errs = append(errs, fmt.Errorf("entry %d: no good", i+1))
		}
		return errs
	}
	for _, tt := range []struct {
		name, file string
		environ    []string
		want       func(path string) string
	}{
		{"right", "window: 10m\n", nil, func(string) string { return "" }},
		{"from the file", "auth:\n  play_keys: [hunter2, hunter2]\n", nil, func(path string) string {
			return path + ":2: auth.play_keys: entry 1: no good\n" + path + ":2: auth.play_keys: entry 2: no good"
		}},
		{"from the environment", "", []string{"HEADCOUNT_AUTH_PLAY_KEYS=hunter2", "HEADCOUNT_PREFIX="}, func(string) string {
			return "HEADCOUNT_PREFIX: prefix: is empty\nHEADCOUNT_AUTH_PLAY_KEYS: auth.play_keys: entry 1: no good"
		}},
		{"unread", "auth: {play_keys: hunter2}\n", nil, func(path string) string {
			return path + `:1: auth.play_keys: want a list such as ["a", "b"]`
		}},
		{"emptied over wrong", "auth: {play_keys: [hunter2]}\n", []string{"HEADCOUNT_AUTH_PLAY_KEYS="}, func(string) string { return "" }},
	} {
		path := writeFile(t, tt.file)
		o := options("--config", path)
		o.Environ, o.Checks = tt.environ, map[string]func(Config) []error{"auth.play_keys": listed}
		_, err := Load(o)
		if diff := cmp.Diff(tt.want(path), message(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestLoadYAMLAlias(t *testing.T) {
	t.Parallel()
	got := load(t, options("--config", writeFile(t, "recorder: {listen: &l \":0\", admin_listen: *l}\nworker: {admin_listen: *l}\n")))
	want := Default()
	want.Recorder.Listen, want.Recorder.AdminListen, want.Worker.AdminListen = ":0", ":0", ":0"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every testdata/<mistake>.yaml is refused with exactly the lines of <mistake>.want.
func TestLoadFileMistakes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 80 {
		t.Fatalf("found %d files with mistakes (%v), want them all", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".want")
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = Load(options("--config", file))
		got := message(err) + "\n"
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: the error shows the password: %s", file, got)
		}
	}
}

func TestLoadFileUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "absent.yaml")
	for path, want := range map[string]string{
		missing: "config file: open " + missing + ": no such file or directory",
		dir:     "config file: read " + dir + ": is a directory",
	} {
		_, err := Load(options("--config", path))
		if got := message(err); got != want {
			t.Errorf("got error %q, want %q", got, want)
		}
	}
}

func TestProgramFlag(t *testing.T) {
	t.Parallel()
	var once bool
	o := options("--once", "--window=1m")
	o.Flags = func(flags *pflag.FlagSet) { flags.BoolVar(&once, "once", false, "make one pass and exit") }
	if got := load(t, o).Window; got != time.Minute || !once {
		t.Errorf("window = %v, once = %v; want 1m and true", got, once)
	}
}

func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "../../config.yaml") {
		f.Add(read(file).content)
	}
	s := &Source{path: "config.yaml", defaults: Default(), known: keys(Default())}
	f.Fuzz(func(t *testing.T, content string) {
		c, err := s.build(reading{content: content})
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("loaded an invalid configuration: %v", err)
			}
			return
		}
		for line := range strings.Lines(err.Error()) {
			if line = strings.TrimSuffix(line, "\n"); line != strings.TrimSpace(line) || line == "" || strings.ContainsAny(line, "\x00\r\t\x1b") {
				t.Errorf("an error is not one clean line: %q", line)
			}
		}
	})
}
