package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"headcount/internal/programtest"
)

// What an operator sees of a program: its log, its metrics and its readiness. Each is waited for, as it may come a moment
// after what it tells of.

// Passes that did not get through.
const (
	partialPass    = "pass partial"
	cutShortPass   = "pass cut short"
	partialPasses  = `headcount_passes_total{outcome="partial"}`
	cutShortPasses = `headcount_passes_total{outcome="cut_short"}`
)

// wantLogged waits until a program has printed lines that begin with these messages.
func wantLogged(t testing.TB, p *programtest.Program, messages ...string) {
	t.Helper()
	for _, message := range messages {
		eventually(t, "the log says "+message, func() bool { return logged(p, message) })
	}
}

// wantMetric waits until a series on the admin listener says want.
func wantMetric(t testing.TB, p *programtest.Program, series string, want float64) {
	t.Helper()
	admin := p.URL(t, "admin")
	eventually(t, fmt.Sprint(series, " = ", want), func() bool { return programtest.Metric(t, admin, series) == want })
}

// wantCounted waits until a counter on the admin listener has risen above before.
func wantCounted(t testing.TB, p *programtest.Program, series string, before float64) {
	t.Helper()
	admin := p.URL(t, "admin")
	eventually(t, series+" rises", func() bool { return programtest.Metric(t, admin, series) > before })
}

// disturbed is how many passes of a worker were partial or cut short. Which of them an outage makes of a pass depends on
// what ends first, the commands that are repeated or the lease.
func disturbed(t testing.TB, worker *programtest.Program) float64 {
	t.Helper()
	admin := worker.URL(t, "admin")
	return programtest.Metric(t, admin, partialPasses) + programtest.Metric(t, admin, cutShortPasses)
}

// wantDisturbed waits until an outage has shown in a worker's metrics, by a pass more than before, and in its log.
func wantDisturbed(t testing.TB, worker *programtest.Program, before float64) {
	t.Helper()
	eventually(t, "a pass is partial or cut short", func() bool { return disturbed(t, worker) > before })
	eventually(t, "the log says so", func() bool { return logged(worker, partialPass) || logged(worker, cutShortPass) })
}

// readiness is an answer of /readyz.
type readiness struct {
	code       int
	Status     string            `json:"status"`
	Components map[string]string `json:"components"`
}

// askReadiness asks for it over the client's connections: a new one may be refused. It is empty where there is no answer.
func (c *client) askReadiness(ctx context.Context, admin string) (r readiness) {
	a := c.get(ctx, admin, "/readyz")
	if json.Unmarshal(a.body, &r) != nil {
		return readiness{}
	}
	r.code = a.code
	return r
}

// wantReady waits until a program is ready and a component of it says so.
func wantReady(t testing.TB, p *programtest.Program, component, state string) {
	t.Helper()
	c := newClient(newLedger())
	defer c.close()
	admin := p.URL(t, "admin")
	eventually(t, "ready, with "+component+" "+state, func() bool {
		r := c.askReadiness(t.Context(), admin)
		return r.code == http.StatusOK && r.Components[component] == state
	})
}
