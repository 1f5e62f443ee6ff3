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
