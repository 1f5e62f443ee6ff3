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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const deadline = 10 * time.Second

// A watched is a Source whose Watch runs until the test ends.
type watched struct {
	*Source
	applied chan Config   // what Apply was called with
	logged  chan logEntry // what was logged above info, and info about nothing to do
	hangup  chan os.Signal
	reg     *prometheus.Registry
}

type logEntry struct {
	message string
	fields  map[string]any
}

// A logCore hands entries to a channel.
type logCore struct {
	zapcore.LevelEnabler
	entries chan<- logEntry
}

func (c logCore) With([]zapcore.Field) zapcore.Core { return c }
func (c logCore) Sync() error                       { return nil }

func (c logCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(e, c)
}

func (c logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	c.entries <- logEntry{e.Message, enc.Fields}
	return nil
}

// startWatch loads the file at path and watches it.
func startWatch(t *testing.T, path string, args ...string) *watched {
	t.Helper()
	return startWatchSettling(t, settle, path, args...)
}

// startWatchSettling is startWatch with another time for a change to settle.
func startWatchSettling(t *testing.T, settle time.Duration, path string, args ...string) *watched {
	t.Helper()
	if path != "" {
		args = append(args, "--config", path)
	}
	s, err := Load(options(args...))
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	s.settle = settle
	w := &watched{
		Source: s, applied: make(chan Config, 1000), logged: make(chan logEntry, 1000),
		hangup: make(chan os.Signal), reg: prometheus.NewRegistry(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- s.Watch(ctx, WatchOptions{
			Logger:     zap.New(logCore{zapcore.InfoLevel, w.logged}),
			Registerer: w.reg, Apply: func(c Config) { w.applied <- c }, Hangup: w.hangup,
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Watch: %v", err)
		}
	})
	return w
}

// receive returns the next value of ch.
func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(deadline):
		t.Fatalf("no %s within %v", what, deadline)
		panic("unreachable")
	}
}

// awaitLog waits for an entry with this message and returns its fields.
func (w *watched) awaitLog(t *testing.T, message string) map[string]any {
	t.Helper()
	for {
		if e := receive(t, w.logged, fmt.Sprintf("log entry %q", message)); e.message == message {
			return e.fields
		}
	}
}

func (w *watched) sighup(t *testing.T) {
	t.Helper()
	select {
	case w.hangup <- syscall.SIGHUP:
	case <-time.After(deadline):
		t.Fatal("Watch does not take a hangup")
	}
}

// checkMetrics compares the metrics: the last reload's success and the count of each outcome.
func (w *watched) checkMetrics(t *testing.T, successful, applied, refused, unchanged int) {
	t.Helper()
	want := fmt.Sprintf(`
# HELP headcount_config_last_reload_successful 1 if the configuration file was valid when it was last read, 0 if it was refused.
# TYPE headcount_config_last_reload_successful gauge
headcount_config_last_reload_successful %d
# HELP headcount_config_reloads_total Readings of a changed configuration file, or on SIGHUP, by outcome.
# TYPE headcount_config_reloads_total counter
headcount_config_reloads_total{outcome="applied"} %d
headcount_config_reloads_total{outcome="refused"} %d
headcount_config_reloads_total{outcome="unchanged"} %d
`, successful, applied, refused, unchanged)
	if err := testutil.GatherAndCompare(w.reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// replace writes content beside path and renames it over path, as editors do.
func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+"~", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// kubernetes writes content the way a mounted ConfigMap is updated: into a new directory, which the symlink ..data is then
// moved to; config.yaml is a symlink through ..data and never changes itself.
func kubernetes(t *testing.T, dir, version, content string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "..data")
	old, _ := os.Readlink(data)
	must(os.Mkdir(filepath.Join(dir, version), 0o700))
	must(os.WriteFile(filepath.Join(dir, version, "config.yaml"), []byte(content), 0o600))
	must(os.Symlink(version, data+"_tmp"))
	must(os.Rename(data+"_tmp", data))
	if old == "" {
		must(os.Symlink(filepath.Join("..data", "config.yaml"), filepath.Join(dir, "config.yaml")))
		return
	}
	must(os.RemoveAll(filepath.Join(dir, old)))
}
