// Package ops is what an operator sees of a program: its log, its admin
// listener, and how it starts and stops serving.
package ops

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check tells the state of a component in a word or two ("ok", "standby"), or
// why it cannot do its work.
type Check func(ctx context.Context) (state string, err error)

// Readiness tells whether the program should be given work. It is not ready
// from Drain on, nor while one of its checks fails.
type Readiness struct {
	checks   map[string]Check
	draining atomic.Bool
}

// NewReadiness returns the readiness of a program with these components.
func NewReadiness(checks map[string]Check) *Readiness { return &Readiness{checks: checks} }

// Drain makes the program not ready for good: it is about to stop.
func (r *Readiness) Drain() { r.draining.Store(true) }

// lastAnswers ends each connection with its next answer while the program
// drains: a client that goes on by another one finds another process.
func (r *Readiness) lastAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, req)
	})
}

// checkTimeout is how long a readiness answer may wait for a component.
const checkTimeout = time.Second

// ServeHTTP answers 200 or 503 and what each component says.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), checkTimeout)
	defer cancel()

	ready := !r.draining.Load()
	components := make(map[string]string, len(r.checks))
	for name, check := range r.checks {
		said, err := check(ctx)
		if err != nil {
			said, ready = err.Error(), false
		}
		components[name] = said
	}
	state, code := "ready", http.StatusOK
	switch {
	case r.draining.Load():
		state, code = "draining", http.StatusServiceUnavailable
	case !ready:
		state, code = "not ready", http.StatusServiceUnavailable
	}
	answer(w, code, status{state, components})
}

// status is the answer of /healthz and /readyz.
type status struct {
	Status     string            `json:"status"`
	Components map[string]string `json:"components,omitempty"`
}

func answer(w http.ResponseWriter, code int, body status) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client has gone, then: nobody to tell
}

// AdminHandler serves /healthz (alive; asks nothing), /readyz, /metrics and
// /debug/pprof/. It is for a listener that the public cannot reach.
func AdminHandler(metrics prometheus.Gatherer, ready *Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, status{Status: "alive"})
	})
	mux.Handle("GET /readyz", ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return safeHeaders(mux)
}

// safeHeaders sets what every answer carries: nothing here is for a page of another
// origin, and what pprof shows loads nothing.
func safeHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
