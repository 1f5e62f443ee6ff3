package main

import (
	"strings"
	"testing"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

const (
	dropsViewers = `"msg":"Redis drops viewers who are watching when it is full: set its maxmemory-policy to noeviction","maxmemory_policy":["volatile-lru"]`
	keepsViewers = `"msg":"Redis keeps what it holds when it is full"`
)

// A Redis that comes after the worker is asked too, and one line is enough.
func TestEvictingRedisIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"))
	s.Kill(t)
	w := s.worker(t)
	w.Wait(t, cannotAsk)
	s.Restart(t)
	if line := w.Wait(t, dropsViewers); line.Field("level") != "warn" {
		t.Errorf("%s, want a warning", line)
	}
	out, err := s.once(t)
	if err != nil || strings.Count(out, dropsViewers) != 1 {
		t.Errorf("--once = %v, printed %s, want the warning", err, out)
	}
	if err := w.Stop(t); err != nil || strings.Count(w.Output(), dropsViewers) != 1 {
		t.Errorf("run() = %v, printed %s, want one warning", err, w.Output())
	}
}

func TestRedisThatKeepsAllIsNotWarnedOf(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"noeviction": {"--maxmemory", "100mb", "--maxmemory-policy", "noeviction"},
		"no limit":   {"--maxmemory", "0", "--maxmemory-policy", "allkeys-lru"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, redistest.Start(t, args...))
			w := programtest.Start(t, run, programtest.Env(s.Addr(), s.prefix, "HEADCOUNT_LOG_LEVEL=debug"))
			w.Wait(t, keepsViewers)
			if strings.Contains(w.Output(), `"level":"warn"`) {
				t.Errorf("printed a warning: %s", w.Output())
			}
		})
	}
}
