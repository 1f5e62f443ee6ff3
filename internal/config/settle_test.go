package config

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
)

func TestWatchManyReloads(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 1s\n")
	w := startWatch(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := w.Config().Validate(); err != nil {
					t.Errorf("an invalid configuration is in force: %v", err)
					return
				}
			}
		})
	}
	const last = 100
	for i := 2; i <= last; i++ {
		replace(t, path, fmt.Sprintf("window: %ds\n", i))
	}
	var windows []time.Duration
	for len(windows) == 0 || windows[len(windows)-1] != last*time.Second {
		windows = append(windows, receive(t, w.applied, "last configuration").Window)
	}
	if !slices.IsSorted(windows) {
		t.Errorf("applied out of order: %v", windows)
	}
}

func TestWatchReloadAfterReload(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 1s\n")
	w := startWatchSettling(t, time.Millisecond, path)
	for i := 2; i <= 101; i++ {
		replace(t, path, fmt.Sprintf("window: %ds\n", i))
		if got, want := receive(t, w.applied, "new configuration").Window, time.Duration(i)*time.Second; got != want {
			t.Fatalf("window = %v, want %v", got, want)
		}
	}
	w.awaitLog(t, "configuration reloaded")
}

func TestWatchTakesOnlySettledReadings(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "window: 9m\n")
	s, err := Load(options("--config", path))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := watch{WatchOptions: WatchOptions{Logger: zap.NewNop()}, source: s, metrics: m, taken: s.loaded}
	for _, step := range []struct {
		content string
		do      func()
		want    time.Duration
	}{
		{"", w.notice, 9 * time.Minute},                      // truncated
		{"window: 8m\n", w.compare, 9 * time.Minute},         // half of it
		{"window: 8m\nlog: {le", w.compare, 9 * time.Minute}, // more of it
		{"window: 7m\n", w.compare, 9 * time.Minute},         // the whole, seen once
		{"window: 7m\n", w.compare, 7 * time.Minute},         // and again
		{"window: 6m\n", w.notice, 7 * time.Minute},          // a change
		{"window: 7m\n", w.compare, 7 * time.Minute},         // taken back
		{"window: 7m\n", w.compare, 7 * time.Minute},         // is none
	} {
		if err := os.WriteFile(path, []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		step.do()
		if got := s.Config().Window; got != step.want {
			t.Errorf("with the content %q: window = %v, want %v", step.content, got, step.want)
		}
	}
	for outcome, want := range map[string]float64{applied: 1, refused: 0, unchanged: 0} {
		if got := testutil.ToFloat64(m.reloads.WithLabelValues(outcome)); got != want {
			t.Errorf("%v reloads %s, want %v", got, outcome, want)
		}
	}
}
