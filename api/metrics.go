package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	refused  map[limit]prometheus.Counter // by the limit that was reached
}

// limit is why a play or leave is refused.
type limit string

const (
	rate limit = "rate"    // the client's address sends too many
	full limit = "viewers" // the video has too many
)

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	refused := auto.NewCounterVec(prometheus.CounterOpts{
		Name: "headcount_refused_total",
		Help: "Plays and leaves beyond a limit, by reason: rate (of the client's address; a batch refused unread counts once), viewers (of the video).",
	}, []string{"reason"})
	return &metrics{
		refused: map[limit]prometheus.Counter{rate: refused.WithLabelValues(string(rate)), full: refused.WithLabelValues(string(full))},
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "headcount_http_requests_total",
			Help: "Requests answered, by route pattern, method and status code. Code 499: the client left before its 503.",
		}, []string{"route", "method", "code"}),
		duration: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headcount_http_request_duration_seconds",
			Help:    "Time from a request's header to the end of its answer, by route pattern.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"route"}),
		inFlight: auto.NewGauge(prometheus.GaugeOpts{
			Name: "headcount_http_requests_in_flight",
			Help: "Requests being answered now.",
		}),
	}
}

// instrument counts and times what next answers. ServeMux notes the matched
// pattern in the request, so next must pass on the request it was given.
func (m *metrics) instrument(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		sw := &statusWriter{ResponseWriter: w}
		m.inFlight.Inc()
		defer func() { // deferred, as a handler may panic
			m.inFlight.Dec()
			route := routeLabel(r.Pattern)
			m.duration.WithLabelValues(route).Observe(time.Since(start).Seconds())
			m.requests.WithLabelValues(route, methodLabel(r.Method), sw.codeLabel(r)).Inc()
		}()
		next.ServeHTTP(sw, r)
	})
}

// routeLabel keeps the label bounded: a pattern of ours or "other".
func routeLabel(pattern string) string {
	if pattern == "" || pattern == "/" {
		return "other"
	}
	return pattern
}

// methodLabel keeps the label bounded: clients may send any word as a method.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions,
		http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method
	}
	return "other"
}

// statusWriter remembers the status written through it.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) codeLabel(r *http.Request) string {
	switch {
	case w.status == 0: // every handler answers, unless it panics
		return "500"
	case w.status == http.StatusServiceUnavailable && r.Context().Err() != nil:
		return "499" // no outage: the client left, as nginx numbers it
	}
	return strconv.Itoa(w.status)
}
