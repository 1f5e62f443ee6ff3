package main

import (
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestReload(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	s.seed(t, "1", "u1", 0)
	s.seed(t, "1", "u2", 5*time.Minute)
	file := programtest.NewConfigFile(t, "window: 10m\nworker: {interval: 100ms}\n")
	w := programtest.Start(t, run, programtest.Env(s.Addr(), s.prefix), "--config", file.Path())
	w.Wait(t, passComplete)
	s.wantCount(t, "1", "2")

	file.Replace(t, "window: 1m\nworker: {interval: 100ms}\n")
	w.Wait(t, `"msg":"configuration reloaded"`)
	w.Forget()
	w.Wait(t, passComplete) // may have begun before, here and below
	w.Wait(t, passComplete)
	s.wantCount(t, "1", "1")

	file.Replace(t, "window: [\n")
	w.Wait(t, `"msg":"configuration file refused, the old configuration stays"`)
	if got := programtest.Metric(t, w.URL(t, "admin"), "headcount_config_last_reload_successful"); got != 0 {
		t.Errorf("headcount_config_last_reload_successful = %v, want 0", got)
	}
	s.seed(t, "1", "u3", 5*time.Minute)
	s.seed(t, "1", "u4", 30*time.Second)
	w.Forget() // the passes that went by meanwhile
	w.Wait(t, passComplete)
	w.Wait(t, passComplete)
	s.wantCount(t, "1", "2")

	file.Replace(t, "window: 10m\nworker: {interval: 100ms}\n")
	w.Wait(t, `"msg":"configuration reloaded"`)
	w.Wait(t, passComplete)
	w.Wait(t, passComplete)
	s.seed(t, "1", "u5", 5*time.Minute)
	w.Forget()
	w.Wait(t, passComplete)
	w.Wait(t, passComplete)
	s.wantCount(t, "1", "3")
}

func TestReloadInterval(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	file := programtest.NewConfigFile(t, "worker: {interval: 11m}\n")
	w := programtest.Start(t, run, programtest.Env(s.Addr(), s.prefix), "--config", file.Path())
	w.Wait(t, passComplete)
	file.Replace(t, "worker: {interval: 100ms}\n")
	w.Wait(t, `"msg":"configuration reloaded"`)
	w.Wait(t, passComplete)
	w.Wait(t, passComplete)
	if got := programtest.Metric(t, w.URL(t, "admin"), "headcount_worker_interval_seconds"); got != 0.1 {
		t.Errorf("headcount_worker_interval_seconds = %v, want 0.1", got)
	}
}
