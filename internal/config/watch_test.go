package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	logRefused = "configuration file refused, the old configuration stays"
	logWaiting = "changed keys wait for a restart"
)

func TestWatchAppliesLiveKeys(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "")
	w := startWatch(t, path)
	replace(t, path, "window: 9m\nworker: {interval: 5s}\nrecorder: {beat_after: 60s}\nlog: {level: debug}\n")
	want := Default()
	want.Window, want.Worker.Interval, want.Recorder.BeatAfter, want.Log.Level = 9*time.Minute, 5*time.Second, time.Minute, "debug"
	if diff := cmp.Diff(want, receive(t, w.applied, "new configuration")); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.Config()); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	fields := w.awaitLog(t, "configuration reloaded")
	if diff := cmp.Diff([]any{"window", "recorder.beat_after", "worker.interval", "log.level"}, fields["keys"]); diff != "" {
		t.Errorf("logged keys (-want +got):\n%s", diff)
	}
	w.checkMetrics(t, 1, 1, 0, 0)
}

func TestWatchWriteInPlace(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 9m\n")
	w := startWatch(t, path)
	if err := os.WriteFile(path, []byte("window: 8m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, w.applied, "new configuration").Window; got != 8*time.Minute {
		t.Errorf("window = %v, want 8m; a half-written file was taken", got)
	}
}

// A change between Load and Watch has no event.
func TestWatchSeesWhatChangedBefore(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 9m\n")
	s, err := Load(options("--config", path))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, "window: 8m\n")
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := s.Watch(ctx, WatchOptions{Logger: zap.NewNop(), Apply: func(Config) { cancel() }}); err != nil {
		t.Fatal(err)
	}
	if got := s.Config().Window; got != 8*time.Minute {
		t.Errorf("window = %v, want 8m", got)
	}
}

func TestWatchFlagAndVariableStillOutweigh(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "")
	w := startWatch(t, path, "--window=8m")
	replace(t, path, "window: 5m\nlog: {level: warn}\n")
	got := receive(t, w.applied, "new configuration")
	if got.Window != 8*time.Minute || got.Log.Level != "warn" {
		t.Errorf("window = %v, level = %s; want the flag's 8m and the file's warn", got.Window, got.Log.Level)
	}
}

func TestWatchSymlinkSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubernetes(t, dir, "..2026_11_30_14_00_00.1", "window: 9m\n")
	w := startWatch(t, filepath.Join(dir, "config.yaml"))
	for i, minutes := range []int{8, 7, 6} {
		kubernetes(t, dir, fmt.Sprintf("..2026_11_30_15_00_00.%d", i), fmt.Sprintf("window: %dm\n", minutes))
		if got, want := receive(t, w.applied, "new configuration").Window, time.Duration(minutes)*time.Minute; got != want {
			t.Errorf("window = %v, want %v", got, want)
		}
	}
	kubernetes(t, dir, "..2026_11_30_16_00_00.1", "window: [\n")
	w.awaitLog(t, logRefused)
	if got := w.Config().Window; got != 6*time.Minute {
		t.Errorf("window = %v after broken YAML, want the old 6m", got)
	}
	w.checkMetrics(t, 0, 3, 1, 0)
}

func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	const running = "window: 9m\n"
	for _, tt := range []struct{ name, content, want string }{
		{"broken YAML", "window: 8m\nredis: [\n", "{path}:2: did not find expected node content"},
		{"unknown key", "window: 8m\nwindw: 8m\n", "{path}:2: unknown key windw, did you mean window?"},
		{"value", "window: 8\n", "{path}:1: window: 8 has no unit; write 8s, 8m or 8h"},
		{"relation", "window: 8m\nrecorder: {beat_after: 5m}\n", "{path}:2, {path}:1: recorder.beat_after 5m is more than half of window 8m: one lost beat would drop a viewer"},
		{"a key that waits", "window: 8m\nprefix: \"\"\n", "{path}:2: prefix: is empty"},
		{
			"relation with a key that waits", "window: 20m\nkey_ttl: 30m\ncount_ttl: 25m\n",
			"key_ttl 15m is less than 1.5 x window 20m; the change of key_ttl needs a restart\n" +
				"count_ttl 12m is not more than window 20m; the change of count_ttl needs a restart",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, running)
			w := startWatch(t, path)
			before := w.Config()
			replace(t, path, tt.content)
			want := strings.ReplaceAll(tt.want, "{path}", path)
			if got := w.awaitLog(t, logRefused)["error"]; got != want {
				t.Errorf("reason:\n got %s\nwant %s", got, want)
			}
			if diff := cmp.Diff(before, w.Config()); diff != "" {
				t.Errorf("a refused file changed the configuration (-before +after):\n%s", diff)
			}
			w.checkMetrics(t, 0, 0, 1, 0)

			replace(t, path, "window: 7m\n")
			if got := receive(t, w.applied, "configuration after a refused one").Window; got != 7*time.Minute {
				t.Errorf("window = %v, want 7m", got)
			}
			w.awaitLog(t, "configuration reloaded")
			w.checkMetrics(t, 1, 1, 1, 0)
		})
	}
}

func TestWatchFileVanishesAndReturns(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 9m\n")
	w := startWatch(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want := "config file: open " + path + ": no such file or directory"
	if got := w.awaitLog(t, logRefused)["error"]; got != want {
		t.Errorf("reason = %q, want %q", got, want)
	}
	replace(t, path, "window: 9m\n")
	w.awaitLog(t, "configuration unchanged")
	w.checkMetrics(t, 1, 0, 1, 1)
}

func TestWatchNamesKeysThatWait(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "")
	w := startWatch(t, path)
	replace(t, path, "prefix: film\nwindow: 9m\nredis: {password: hunter2, timeout: 1s}\n")
	fields := w.awaitLog(t, logWaiting)
	if diff := cmp.Diff([]any{"prefix", "redis.password", "redis.timeout"}, fields["keys"]); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	want := Default()
	want.Window = 9 * time.Minute
	if diff := cmp.Diff(want, receive(t, w.applied, "new configuration")); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}

	replace(t, path, "prefix: film\nwindow: 9m\n")
	if diff := cmp.Diff([]any{"prefix"}, w.awaitLog(t, logWaiting)["keys"]); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	w.awaitLog(t, "configuration unchanged")
	w.checkMetrics(t, 1, 1, 0, 1)
}

func TestWatchHangup(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 9m\n")
	w := startWatch(t, path)
	w.sighup(t)
	w.awaitLog(t, "configuration unchanged")
	w.checkMetrics(t, 1, 0, 0, 1)
}

func TestWatchHangupWithoutFile(t *testing.T) {
	t.Parallel()
	w := startWatch(t, "")
	w.sighup(t)
	w.awaitLog(t, "no configuration file to read, nothing to reload")
	w.checkMetrics(t, 1, 0, 0, 0)
}

// The signal itself, as every other test hands in its own channel. Not parallel: a signal is for the whole process.
func TestWatchSIGHUP(t *testing.T) {
	path := writeFile(t, "")
	s, err := Load(options("--config", path))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, "window: 9m\n")
	ctx, cancel := context.WithCancel(t.Context())
	logged, ended := make(chan logEntry, 10), make(chan error)
	go func() { ended <- s.Watch(ctx, WatchOptions{Logger: zap.New(logCore{zapcore.InfoLevel, logged})}) }()
	if got := receive(t, logged, "log entry").message; got != "configuration reloaded" {
		t.Fatalf("logged %q, want that the configuration was reloaded", got)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, logged, "log entry").message; got != "configuration unchanged" {
		t.Errorf("logged %q, want that nothing changed", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Each of 100 reloads is waited for, so that each is one.
// What the file holds while it is being written is not taken: two readings have to agree.
func TestWatchMetricsTaken(t *testing.T) {
	t.Parallel()
	s, err := Load(options())
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	if _, err := newMetrics(reg); err != nil {
		t.Fatal(err)
	}
	if err := s.Watch(t.Context(), WatchOptions{Logger: zap.NewNop(), Registerer: reg}); err == nil {
		t.Error("Watch registered its metrics twice")
	}
}

func TestWatchWithoutDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.yaml")
	replace(t, path, "")
	s, err := Load(options("--config", path))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	logged, ended := make(chan logEntry, 10), make(chan error)
	go func() {
		ended <- s.Watch(ctx, WatchOptions{Logger: zap.New(logCore{zapcore.InfoLevel, logged}), Hangup: make(chan os.Signal)})
	}()
	if got, want := receive(t, logged, "warning").message, "configuration file is not watched, changes wait for SIGHUP"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
