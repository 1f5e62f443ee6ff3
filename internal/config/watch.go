package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// WatchOptions say what follows from a change.
type WatchOptions struct {
	// Logger is told of every reload.
	Logger *zap.Logger
	// Registerer receives headcount_config_last_reload_successful and headcount_config_reloads_total; nil keeps
	// them unexported.
	Registerer prometheus.Registerer
	// Apply is called with each new configuration once it is in force, one call at a time; nil calls nothing.
	Apply func(Config)
	// Hangup asks for a reload; nil stands for SIGHUP.
	Hangup <-chan os.Signal
}

// Watch puts changes into force until ctx ends: when the file changes, also through a swapped symlink in its directory,
// and on SIGHUP. Only window, worker.interval, recorder.beat_after and log.level change; other keys wait for a
// restart, which the log says. A file with a mistake changes nothing. Watch returns nil when ctx ends, and an error
// only if the metrics cannot be registered. One Watch at a time.
func (s *Source) Watch(ctx context.Context, o WatchOptions) error {
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return fmt.Errorf("config: register metrics: %w", err)
	}
	if o.Hangup == nil {
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		o.Hangup = hangup
	}
	w := watch{WatchOptions: o, source: s, metrics: m, taken: s.loaded}
	if s.path != "" {
		files, err := watchDirectory(filepath.Dir(s.path))
		if err != nil {
			o.Logger.Warn("configuration file is not watched, changes wait for SIGHUP", zap.Error(err))
		} else {
			defer func() { _ = files.Close() }() // nothing is left to read from it
			w.events, w.errors = files.Events, files.Errors
		}
	}
	w.run(ctx)
	return nil
}

// watchDirectory watches the directory of the file, because what replaces a file by a rename or a symlink's swap leaves a
// watch on the file itself behind.
func watchDirectory(dir string) (*fsnotify.Watcher, error) {
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := files.Add(dir); err != nil {
		return nil, errors.Join(err, files.Close())
	}
	return files, nil
}

// A watch turns events into reloads. An event only says that it is worth reading the file; what the file holds decides.
// A reading counts once a second one a little later agrees with it: so a file is not taken half-written, and a burst
// of events is one reload.
type watch struct {
	WatchOptions
	source  *Source
	metrics *metrics
	events  <-chan fsnotify.Event
	errors  <-chan error

	taken   reading          // the last one that counted
	pending reading          // the last one made
	settled <-chan time.Time // when to compare pending with another; nil while nothing is pending
	forced  bool             // by a hangup: the next reading counts even if nothing changed
}

func (w *watch) run(ctx context.Context) {
	w.notice() // of what changed since the file was loaded
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.Hangup:
			w.forced = true
			w.notice()
		case <-w.events:
			w.notice()
		case err := <-w.errors:
			w.Logger.Warn("events of the configuration file may be lost", zap.Error(err))
			w.notice()
		case <-w.settled:
			w.compare()
		}
	}
}

func (w *watch) notice() {
	if w.settled == nil {
		w.pending, w.settled = read(w.source.path), time.After(w.source.settle)
	}
}

func (w *watch) compare() {
	w.settled = nil
	r := read(w.source.path)
	if r != w.pending {
		w.notice()
		return
	}
	if r == w.taken && !w.forced {
		return
	}
	w.taken, w.forced = r, false
	w.reload(r)
}

func (w *watch) reload(r reading) {
	if w.source.path == "" {
		w.Logger.Info("no configuration file to read, nothing to reload")
		return
	}
	c, waiting, err := w.source.next(r)
	if err != nil {
		w.metrics.count(refused)
		w.Logger.Warn("configuration file refused, the old configuration stays", zap.Error(err))
		return
	}
	if len(waiting) > 0 {
		w.Logger.Warn("changed keys wait for a restart", zap.Strings("keys", waiting))
	}
	changes := changed(w.source.Config(), c)
	if len(changes) == 0 {
		w.metrics.count(unchanged)
		w.Logger.Info("configuration unchanged")
		return
	}
	w.source.current.Store(&c)
	w.metrics.count(applied)
	w.Logger.Info("configuration reloaded", zap.Strings("keys", changes))
	if w.Apply != nil {
		w.Apply(c)
	}
}

// next returns the running configuration with what may change while running taken from r, and names the other keys that
// r changes. Both r by itself and the mixture have to be right.
func (s *Source) next(r reading) (c Config, waiting []string, err error) {
	wanted, err := s.build(r)
	if err != nil {
		return Config{}, nil, err
	}
	c = s.Config()
	c.Window, c.Worker.Interval = wanted.Window, wanted.Worker.Interval
	c.Recorder.BeatAfter, c.Log.Level = wanted.Recorder.BeatAfter, wanted.Log.Level
	waiting = changed(c, wanted)
	var errs []error
	for _, p := range c.problems(nil) {
		for _, k := range p.keys {
			if slices.Contains(waiting, k) {
				p.text += "; the change of " + k + " needs a restart"
			}
		}
		errs = append(errs, p.at(nil))
	}
	return c, waiting, errors.Join(errs...)
}
