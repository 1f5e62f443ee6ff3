// Package api is the public HTTP contract: players say that a video plays or
// was left, pages ask how many are watching. It knows neither Redis nor the
// rules for ids; what it needs it declares as interfaces, and it logs nothing.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"
)

// Recorder records plays and leaves.
//
// An error with a method BadInput() (field, reason string) is answered with
// 400 and "field: reason"; the reason must not repeat what the client sent. One
// with a method VideoFull() is answered with 429: the viewer is one too many.
// Any other error is answered with 503.
type Recorder interface {
	// Play records that the viewer watches the video now, and returns that
	// time in Unix seconds by Redis's clock.
	Play(ctx context.Context, videoID, viewerID string) (recordedAt int64, err error)

	// Resume is Play for a viewer who has been watching all the time, whatever
	// was said: it is not another start.
	Resume(ctx context.Context, videoID, viewerID string) (recordedAt int64, err error)

	// PlayAll is Play for many: videoIDs[i] is watched by viewerIDs[i]. The
	// i-th error is nil where that play was recorded.
	PlayAll(ctx context.Context, videoIDs, viewerIDs []string) (recordedAt int64, errs []error)

	// Leave removes the viewer unless seen after recordedAt, in Unix seconds.
	// With recordedAt 0 it removes the viewer in any case.
	Leave(ctx context.Context, videoID, viewerID string, recordedAt int64) error
}

// Lookup reads counts. Its errors are answered like a Recorder's.
type Lookup interface {
	// Viewers returns how many viewers watch the video, and when that was
	// true: the zero time when unknown.
	Viewers(ctx context.Context, videoID string) (viewers int64, asOf time.Time, err error)

	// Batch is Viewers for several videos, in their order.
	Batch(ctx context.Context, videoIDs []string) (viewers []int64, asOf time.Time, err error)
}

// Limiter bounds what the client at an address may record.
type Limiter interface {
	// Take takes n plays or leaves, at most Burst, from what the client may
	// still record, or none and returns how long until it may record so many.
	Take(client netip.Addr, n int) (wait time.Duration)

	// Burst is the most that can be taken at once.
	Burst() int
}

// Options are what Handler is built from. BeatAfter is required, and Recorder and
// Lookup, or Kinds.
type Options struct {
	Recorder Recorder
	Lookup   Lookup

	// Statistics are what is known beside counts.
	Statistics Statistics

	// Tokens verifies the tokens that plays and leaves then need. Nil: they
	// need none, and one that is given is ignored.
	Tokens Tokens

	// Kinds, where there are any, take the place of Recorder, Lookup and
	// Statistics. The first is meant where a request names none, and its
	// Statistics have who is on the site, for whom Tokens serves then.
	Kinds []Kind

	// BeatAfter returns how long after a play a player that still plays is to
	// say so again. It is asked for each play, so it may change while running.
	// Answers carry whole seconds, at least 1.
	BeatAfter func() time.Duration

	// CORSOrigins are the origins whose pages may call: "*" for any,
	// "https://*.example.org" for a pattern. None: no page of another origin.
	CORSOrigins []string

	// CacheFor is how long browsers and CDNs may hold a count, in whole
	// seconds. Less than a second: not at all.
	CacheFor time.Duration

	// Limiter bounds what a client may record; nil: no limit. ClientAddr tells the
	// address that stands for a request's client; nil: all are one client.
	Limiter    Limiter
	ClientAddr func(*http.Request) netip.Addr

	// Timeout is the deadline that Recorder and Lookup get. 0: none.
	Timeout time.Duration

	// Files are what is served besides the API, by path as in ServeMux. They
	// are asked for GET and HEAD only. None: there are no others.
	Files map[string]http.Handler

	// Registerer takes the metrics. Nil: they are not registered.
	Registerer prometheus.Registerer
}

type api struct {
	Options
	kinds        []*kind // at least one
	metrics      *metrics
	cacheControl string // of a count that is known
	reading      reading
	batches      chan struct{} // has an element for each batch of plays that is being recorded
}

// Handler serves all public routes. It panics when its metrics are registered already.
func Handler(o Options) http.Handler {
	a := newAPI(o)
	mux := http.NewServeMux()
	for path, m := range a.routes() {
		a.route(mux, path, m)
	}
	for path, file := range o.Files {
		a.route(mux, path, methods{http.MethodGet: serveFile(file)})
	}
	mux.HandleFunc("/", notFound)

	return a.metrics.instrument(
		safeHeaders(resourcePolicy(o.CORSOrigins),
			allowOrigins(o.CORSOrigins,
				a.exactPath(mux))))
}

func newAPI(o Options) *api {
	a := &api{
		Options:      o,
		metrics:      newMetrics(o.Registerer),
		cacheControl: cacheControl(o.CacheFor),
		reading:      reading{byClient: make(map[netip.Addr]int64)},
		batches:      make(chan struct{}, maxBatches),
	}
	a.kinds = a.allKinds()
	return a
}

// routes are all paths that exist. openapi.yaml describes each of them.
func (a *api) routes() map[string]methods {
	online := a.site().Site != nil && a.site().Online != nil
	all := map[string]methods{
		"/v1/plays":   {http.MethodPost: a.plays, http.MethodGet: a.ofKind((*kind).playsRoute)},
		"/v1/viewers": {http.MethodGet: a.ofKind((*kind).batchRoute)},
		"/v1/uniques": {http.MethodGet: a.ofKind((*kind).uniquesRoute)},
		"/v1/history": {http.MethodGet: a.ofKind((*kind).historyRoute)},
		"/v1/top":     {http.MethodGet: a.ofKind((*kind).topRoute)},
		"/v1/online": {
			http.MethodPost: statistic(online, "stats.online", a.limited(a.online)),
			http.MethodGet:  statistic(online, "stats.online", a.countOnline),
		},
		"/v1/online/leave": {http.MethodPost: statistic(online, "stats.online", a.limited(a.offline))},
		"/openapi.yaml":    {http.MethodGet: openAPI},
	}
	for _, k := range a.kinds {
		video := k.root + "{video_id}"
		maps.Copy(all, map[string]methods{
			video + "/play":    {http.MethodPost: a.limited(k.play)},
			video + "/leave":   {http.MethodPost: a.limited(k.leave)},
			video + "/viewers": {http.MethodGet: k.viewers},
			video + "/uniques": {http.MethodGet: k.uniquesRoute()},
			video + "/plays":   {http.MethodGet: k.playsRoute()},
			video + "/history": {http.MethodGet: k.historyRoute()},
			video + "/stats":   {http.MethodGet: k.overviewRoute()},
		})
	}
	return all
}

// handlerFunc answers a request, or returns why not; problemFor has the status.
type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// methods are the handlers of one path. A handler for GET serves HEAD too.
type methods map[string]handlerFunc

func (a *api) route(mux *http.ServeMux, path string, m methods) {
	h := a.serve(m)
	mux.Handle(path, h)

	// ServeMux takes a segment that is only an escaped slash for a trailing
	// slash, which no wildcard matches: the id "/" needs a pattern of its own.
	if slash := strings.Replace(path, "{video_id}", "%2F", 1); slash != path {
		mux.HandleFunc(slash, func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = path
			r.SetPathValue("video_id", "/")
			h.ServeHTTP(w, r)
		})
	}
}

// serve is how every route answers: by method, under the deadline, errors as problems.
func (a *api) serve(m methods) http.Handler {
	if get, ok := m[http.MethodGet]; ok {
		m[http.MethodHead] = get
	}
	allow := m.allow()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle, ok := m[r.Method]
		if !ok {
			w.Header().Set("Allow", allow)
			newProblem(http.StatusMethodNotAllowed, "allowed here: "+allow).write(w)
			return
		}
		if r.Method != http.MethodPost { // whose handlers read the body first
			var cancel context.CancelFunc
			r, cancel = a.inTime(r)
			defer cancel()
		}
		if err := handle(w, r); err != nil {
			a.problemFor(err).write(w)
		}
	})
}

// inTime has the work on a request end by the deadline, which begins now. A body has
// had the server's own time to arrive: a slow client is no slow Redis.
func (a *api) inTime(r *http.Request) (*http.Request, context.CancelFunc) {
	if a.Timeout <= 0 {
		return r, func() {}
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.Timeout)
	return r.WithContext(ctx), cancel
}

// allow lists the methods for the Allow header.
func (m methods) allow() string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// serveFile lets a file answer, which does not fail.
func serveFile(file http.Handler) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		file.ServeHTTP(w, r)
		return nil
	}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	newProblem(http.StatusNotFound, "no such path").write(w)
}

// safeHeaders sets what every answer carries: it is data, and neither a page nor
// a part of one. Handlers override Cache-Control where an answer may be cached,
// and Content-Security-Policy where it is a page.
func safeHeaders(resourcePolicy string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", resourcePolicy)
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// resourcePolicy lets other origins have answers where their pages may call. CORS
// says which may read them; this is for what is sent without CORS, such as beacons.
func resourcePolicy(origins []string) string {
	if len(origins) == 0 {
		return "same-origin"
	}
	return "cross-origin"
}

// preflightSeconds is how long a browser may remember a preflight: two hours,
// the most that Chromium does.
const preflightSeconds = 7200

// allowOrigins answers preflights and lets pages of these origins read the answers.
func allowOrigins(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next // an empty list means any origin to rs/cors
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodHead},
		AllowedHeaders: []string{"Content-Type", "Authorization"},
		ExposedHeaders: []string{"Retry-After"},
		MaxAge:         preflightSeconds,
	}).Handler(next)
}

// writeJSON answers 200, or returns an error before anything is written. Ids
// are written as they are, not HTML-escaped.
func writeJSON(w http.ResponseWriter, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(buf.Bytes()) // fails only when the client is gone
	return nil
}
