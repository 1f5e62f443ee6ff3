package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"headcount/internal/ops"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says is a component in this state.
func says(state string, err error) ops.Check {
	return func(context.Context) (string, error) { return state, err }
}

// ask asks a handler without a network.
func ask(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	ok, down := says("ok", nil), says("", errors.New("unreachable: no route to host"))
	tests := []struct {
		name   string
		checks map[string]ops.Check
		drain  bool
		code   int
		body   string
	}{
		{
			name: "ready", code: 200,
			checks: map[string]ops.Check{"redis": ok, "lease": says("standby", nil)},
			body:   `{"status":"ready","components":{"lease":"standby","redis":"ok"}}`,
		},
		{
			name: "one component fails", code: 503,
			checks: map[string]ops.Check{"redis": down, "lease": says("standby", nil)},
			body:   `{"status":"not ready","components":{"lease":"standby","redis":"unreachable: no route to host"}}`,
		},
		{
			name: "draining", drain: true, code: 503,
			checks: map[string]ops.Check{"redis": ok},
			body:   `{"status":"draining","components":{"redis":"ok"}}`,
		},
		{
			name: "draining and failing", drain: true, code: 503,
			checks: map[string]ops.Check{"redis": down},
			body:   `{"status":"draining","components":{"redis":"unreachable: no route to host"}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ready := ops.NewReadiness(test.checks)
			if test.drain {
				ready.Drain()
			}
			got := ask(t, ready, "/readyz")
			if got.Code != test.code {
				t.Errorf("status code = %d, want %d", got.Code, test.code)
			}
			if diff := cmp.Diff(test.body+"\n", got.Body.String()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// A component that does not answer must not keep the answer waiting.
func TestReadyzIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		began := time.Now()
		got := ask(t, ops.NewReadiness(map[string]ops.Check{"redis": hangs}), "/readyz")
		if took := time.Since(began); took != time.Second {
			t.Errorf("answered after %s, want 1s", took)
		}
		if got.Code != http.StatusServiceUnavailable {
			t.Errorf("status code = %d, want 503", got.Code)
		}
	})
}

func TestAdminHandler(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."})
	metrics.MustRegister(counter)
	counter.Add(3)
	// Being alive must not depend on anything, so its component is down.
	ready := ops.NewReadiness(map[string]ops.Check{"redis": says("", errors.New("down"))})
	h := ops.AdminHandler(metrics, ready)

	for path, want := range map[string]struct {
		code int
		body string // a part of it
	}{
		"/healthz":                   {200, `{"status":"alive"}`},
		"/readyz":                    {503, `"status":"not ready"`},
		"/metrics":                   {200, "things_total 3"},
		"/debug/pprof/":              {200, "goroutine"},
		"/debug/pprof/cmdline":       {200, "ops.test"},
		"/debug/pprof/symbol":        {200, "num_symbols"},
		"/debug/pprof/heap?debug=1":  {200, "heap profile"},
		"/debug/pprof/trace?seconds": {200, "go 1"},
		"/":                          {404, ""},
		"/v1/videos/1/viewers":       {404, ""},
	} {
		got := ask(t, h, path)
		if got.Code != want.code || !strings.Contains(got.Body.String(), want.body) {
			t.Errorf("GET %s = %d %.200q, want %d with %q", path, got.Code, got.Body, want.code, want.body)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"Content-Security-Policy":      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := got.Header().Get(name); got != want {
				t.Errorf("GET %s: %s = %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, level, err := ops.NewLogger(&out, "warn", ops.JSON)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("too quiet")
	log.Warn("one", zap.Duration("took", 1500*time.Millisecond))
	level.SetLevel(zap.InfoLevel)
	log.Info("two")

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2:\n%s", len(lines), &out)
	}
	var got struct {
		Time             time.Time
		Level, Msg, Took string
	}
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, lines[0])
	}
	if got.Level != "warn" || got.Msg != "one" || got.Took != "1.5s" || got.Time.IsZero() {
		t.Errorf("line = %s, want time, level warn, msg one and took 1.5s", lines[0])
	}
}

func TestConsoleLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, _, err := ops.NewLogger(&out, "info", ops.Console)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("pass complete", zap.Int("videos", 7))
	_, line, _ := strings.Cut(out.String(), "\t") // after the time
	if want := "INFO\tpass complete\t{\"videos\": 7}\n"; line != want {
		t.Errorf("line = %q, want %q", line, want)
	}
}

func TestLoggerRefusesALevel(t *testing.T) {
	t.Parallel()
	_, _, err := ops.NewLogger(&bytes.Buffer{}, "loud", ops.JSON)
	if err == nil || !strings.Contains(err.Error(), "log.level") || !strings.Contains(err.Error(), "loud") {
		t.Errorf("NewLogger() = %v, want an error that names log.level and the value", err)
	}
}
