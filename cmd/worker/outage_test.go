package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestRedisRestart(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t))
	w := s.worker(t, "HEADCOUNT_LEASE_TTL=1500ms")
	w.Wait(t, passComplete)
	s.Kill(t)
	w.Wait(t, `"msg":"pass partial: what failed keeps its earlier count"`)
	w.Wait(t, `"msg":"the lease was lost"`)
	w.Wait(t, cannotAsk)
	if got := programtest.Get(t, w.URL(t, "admin")+"/readyz"); got.Code != http.StatusServiceUnavailable ||
		!strings.Contains(got.Body, `"redis":"unreachable: `) {
		t.Errorf("readyz with Redis down = %v, want 503 that says that redis is unreachable", got)
	}

	s.Restart(t)
	s.seed(t, "1", "u1", 0)
	w.Wait(t, leading)
	w.Wait(t, passComplete)
	s.wantCount(t, "1", "1")
	if got := programtest.Get(t, w.URL(t, "admin")+"/readyz"); got.Code != http.StatusOK {
		t.Errorf("readyz after the restart = %v, want 200", got)
	}
}

func TestRedisDownAtStart(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Start(t))
	s.Kill(t)
	w := s.worker(t)
	if line := w.Wait(t, cannotAsk); !strings.Contains(fmt.Sprint(line.Field("error")), "refused") {
		t.Errorf("the line does not say why: %s", line)
	}
	admin := w.URL(t, "admin")
	if got := programtest.Get(t, admin+"/readyz"); got.Code != http.StatusServiceUnavailable ||
		!strings.Contains(got.Body, `"components":{"lease":"standby","redis":"unreachable: `) {
		t.Errorf("readyz with Redis down = %v, want 503 that says that redis is unreachable", got)
	}
	if got := programtest.Get(t, admin+"/healthz"); got.Code != http.StatusOK {
		t.Errorf("healthz with Redis down = %v, want 200", got)
	}
	if strings.Contains(w.Output(), standingBy) {
		t.Errorf("it says that another worker holds the lease:\n%s", w.Output())
	}
}
