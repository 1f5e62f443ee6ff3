package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/api"
	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/lookup"
	"headcount/recorder"
	"headcount/stats"
)

// TestOpenAPI holds openapi.yaml and the handlers against each other, on a real Redis, in both directions: what the
// document allows is accepted and what it does not is refused; what is answered is what it describes, to the last field
// and header; and each answer that it promises for a method of a path has been seen.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	t.Run("routes", c.checkRoutes)
	t.Run("exchanges", c.checkExchanges)
	t.Run("examples of requests", c.checkRequestExamples)
	t.Run("other methods", c.checkOtherMethods)
	t.Run("ids", c.checkIDs)
	t.Run("fields", c.checkFields)
	t.Run("batch sizes", c.checkBatchSizes)
	t.Run("body sizes", c.checkBodySizes)
	t.Run("seen", c.checkSeen)
}

// contract is the document, as it is served, and the handlers.
type contract struct {
	doc    *openapi3.T
	prose  string // the document, with one space for each run of white space
	router routers.Router

	servers map[string]*httptest.Server

	answers  map[string]bool // such as "POST /v1/plays 200": seen
	examples map[string]bool // JSON answers, with the times made the same: seen
}

func newContract(t *testing.T) *contract {
	t.Helper()
	openapi3filter.RegisterBodyDecoder("application/json", decodeJSON)
	openapi3filter.RegisterBodyDecoder("application/problem+json", decodeJSON)
	openapi3filter.RegisterBodyDecoder("text/plain", decodeJSON)
	c := &contract{servers: startServers(t), answers: map[string]bool{}, examples: map[string]bool{}}
	text := get(t, c.servers[fresh], "/openapi.yaml").body
	c.prose = strings.Join(strings.Fields(text), " ")
	var err error
	if c.doc, err = openapi3.NewLoader().LoadFromData([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := c.doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	if c.router, err = gorillamux.NewRouter(c.doc); err != nil {
		t.Fatal(err)
	}
	return c
}

// decodeJSON takes one JSON text in UTF-8. The library's own ignores what comes after, and reads text/plain as text.
func decodeJSON(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, fmt.Errorf("not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	return value, dec.Decode(&value)
}

// The servers that requests go to.
const (
	fresh  = "fresh"  // u1 watches 10001; no pass has been made
	passed = "passed" // u1 and u2 watch 10001; a pass has been made
	down   = "down"   // Redis does not answer

	limited = "limited" // the client may not record anything now
	narrow  = "narrow"  // the client may record one play at once
	full    = "full"    // u1 watches 10001, which may have no other viewer
	signed  = "signed"  // tokens are needed, such as "10003/u1"

	off = "off" // no statistic is kept
)

func startServers(t *testing.T) map[string]*httptest.Server {
	t.Helper()
	live, dead := redistest.Shared(t), redistest.Start(t)
	dead.Kill(t)
	return map[string]*httptest.Server{
		fresh:  startServer(t, live.Addr(), world{viewers: []string{"u1"}}),
		passed: startServer(t, live.Addr(), world{viewers: []string{"u1", "u2"}, pass: true}),
		down:   startServer(t, dead.Addr(), world{}),

		limited: startServer(t, live.Addr(), world{limiter: &fakeLimiter{wait: time.Minute, clients: map[netip.Addr]bool{}}}),
		narrow:  startServer(t, live.Addr(), world{limiter: &fakeLimiter{left: 9, burst: 1, clients: map[netip.Addr]bool{}}}),
		full:    startServer(t, live.Addr(), world{viewers: []string{"u1"}, maxViewers: 1}),
		signed:  startServer(t, live.Addr(), world{tokens: fakeTokens{}}),

		off: startServer(t, live.Addr(), world{off: true}),
	}
}

// world is what a server finds.
type world struct {
	viewers []string // who watch 10001
	pass    bool     // one has been made

	off        bool // no statistic is kept
	maxViewers int
	limiter    api.Limiter
	tokens     api.Tokens
}

// startServer serves the recorder's routes from the Redis at addr.
func startServer(t *testing.T, addr string, w world) *httptest.Server {
	t.Helper()
	rdb, err := redisclient.New(redisclient.Options{Mode: redisclient.Single, Addrs: []string{addr}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	const window, keyTTL, countTTL = 10 * time.Minute, 15 * time.Minute, 12 * time.Minute
	k := keys.New(redistest.Prefix(t))
	recorded := recorder.Options{Keys: k, KeyTTL: keyTTL, CountTTL: countTTL, Window: window, MaxViewers: w.maxViewers}
	passes := aggregator.Options{Keys: k, Window: window, KeyTTL: keyTTL, CountTTL: countTTL}
	var statistics api.Statistics
	if !w.off {
		statistics = keepStatistics(t, rdb, &recorded, &passes)
	}
	plays := recorder.New(rdb, recorded)
	if !w.off {
		statistics.Site = plays
	}
	counter := aggregator.New(rdb, passes)
	counts, err := lookup.New(rdb, lookup.Options{Keys: k, CountTTL: countTTL, Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(counts.Close)
	for _, viewer := range w.viewers {
		if _, err := plays.Play(t.Context(), "10001", viewer); err != nil {
			t.Fatal(err)
		}
	}
	if w.pass {
		if _, err := counter.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(api.Handler(api.Options{
		Recorder:    plays,
		Lookup:      counts,
		Statistics:  statistics,
		BeatAfter:   func() time.Duration { return window / 4 },
		CORSOrigins: []string{"*"},
		CacheFor:    3 * time.Second,
		Limiter:     w.limiter,
		ClientAddr:  func(*http.Request) netip.Addr { return client },
		Tokens:      w.tokens,
		Timeout:     time.Minute,
	}))
	t.Cleanup(srv.Close)
	return srv
}

// keepStatistics switches all statistics on.
func keepStatistics(t *testing.T, rdb redis.UniversalClient, r *recorder.Options, a *aggregator.Options) api.Statistics {
	t.Helper()
	store, err := stats.NewStore(rdb, stats.Options{Keys: r.Keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	failures, err := stats.NewFailures(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	online, uniques, plays := stats.NewOnline(store, r.Window, r.KeyTTL), stats.NewUniques(store), stats.NewPlays(store, failures)
	r.Statistics = recorder.Statistics{Online: online, Uniques: uniques, Plays: plays, Failed: failures.Note}
	passes := &stats.Passes{
		Online: online, Plays: plays, Top: stats.NewTop(store, 10, r.CountTTL), Peaks: stats.NewPeaks(store),
		History: stats.NewHistory(store, 24*time.Hour), KeyTTL: r.KeyTTL, Failures: failures,
	}
	a.Observe = func(began time.Time) aggregator.Observer { return passes.Begin(began) }
	return api.Statistics{
		Online: online, Uniques: uniques, Plays: plays, Top: passes.Top, Peaks: passes.Peaks, History: passes.History,
	}
}

func get(t *testing.T, srv *httptest.Server, path string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, srv, r)
}

func do(t *testing.T, srv *httptest.Server, r *http.Request) answer {
	t.Helper()
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return readAnswer(t, res)
}

// operations calls do with each operation of the document.
func (c *contract) operations(do func(method, path string, op *openapi3.Operation)) {
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			do(method, path, op)
		}
	}
}

func (c *contract) checkRoutes(t *testing.T) {
	documented := map[string][]string{}
	c.operations(func(method, path string, _ *openapi3.Operation) {
		documented[path] = append(documented[path], method)
	})
	routes := api.Routes()
	for path, methods := range routes {
		routes[path] = append(methods, http.MethodOptions) // for all routes alike
	}
	for _, all := range []map[string][]string{documented, routes} {
		for _, methods := range all {
			slices.Sort(methods)
		}
	}
	if diff := cmp.Diff(routes, documented); diff != "" {
		t.Errorf("routes (-handler +document):\n%s", diff)
	}
}

// checkOtherMethods sends each path the methods that it does not have.
func (c *contract) checkOtherMethods(t *testing.T) {
	for path, item := range c.doc.Paths.Map() {
		operations := item.Operations()
		target := strings.Replace(path, "{video_id}", "10001", 1)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"} {
			if operations[method] == nil {
				c.check(t, exchange{method: method, target: target, status: http.StatusMethodNotAllowed})
			}
		}
	}
}

// checkRequestExamples sends what the document shows.
func (c *contract) checkRequestExamples(t *testing.T) {
	c.operations(func(method, path string, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		target := strings.Replace(path, "{video_id}", "10009", 1)
		for mediaType, content := range op.RequestBody.Value.Content {
			for name, example := range content.Examples {
				t.Run(method+" "+path+" "+mediaType+" "+name, func(t *testing.T) {
					body := toJSON(t, example.Value.Value)
					if res, _ := c.send(t, exchange{method: method, target: target, contentType: mediaType, body: body}); !accepted(res) {
						t.Errorf("answered with %d %s", res.status, res.body)
					}
				})
			}
		}
	})
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkSeen comes last: by now, each answer that the document promises was given, and each example was one of them.
func (c *contract) checkSeen(t *testing.T) {
	c.operations(func(method, path string, op *openapi3.Operation) {
		for status, response := range op.Responses.Map() {
			answer := method + " " + path + " " + status
			if !c.answers[answer] {
				t.Errorf("%s: never seen", answer)
			}
			c.checkExamples(t, answer, response.Value)
		}
	})
	c.checkExamples(t, "no such path", c.doc.Components.Responses["NotFound"].Value)
}

// checkExamples checks that each example of the answer was really answered, but for its times.
func (c *contract) checkExamples(t *testing.T, answer string, response *openapi3.Response) {
	t.Helper()
	for _, content := range response.Content {
		examples := []any{content.Example}
		for _, example := range content.Examples {
			examples = append(examples, example.Value.Value)
		}
		for _, example := range examples {
			if example != nil && !c.examples[sameTimes(t, toJSON(t, example))] {
				t.Errorf("%s: nothing was answered like the example %v", answer, example)
			}
		}
	}
}
