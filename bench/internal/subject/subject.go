// Package subject is the HTTP servers that are loaded: the product's own
// handler before its own recorder and lookup, or before what they are compared
// with. Each runs in a process of its own.
package subject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"headcount/api"
	"headcount/bench/internal/dataset"
	"headcount/internal/keys"
	"headcount/internal/ops"
	"headcount/internal/redisclient"
	"headcount/lookup"
	"headcount/recorder"
)

// Kinds of servers.
const (
	Ours     = "ours"     // the product
	OneCall  = "one call" // the product's handler, a script call for each request
	NoRedis  = "no redis" // the product's handler, which answers at once
	Constant = "constant" // a handler that writes the same JSON to everybody

	AllStatistics = "all statistics" // the product with all statistics on, and with one
	WithOnline    = "online"
	WithUniques   = "uniques"
	WithPlays     = "plays"
)

// Times of the product, from its default configuration.
const (
	redisTimeout = 500 * time.Millisecond
	writeTimeout = 2 * redisTimeout
	// Deadline is when a play that waits is answered with 503.
	Deadline = 2 * writeTimeout
	cacheFor = time.Second
)

// Spec tells a server what to be.
type Spec struct {
	Kind  string
	Redis string // host:port
}

// addrs is where a server listens.
type addrs struct{ Public, Admin string }

// Serve is the server process: it writes where it listens to stdout as a line
// of JSON, and serves until stdin ends.
func Serve(ctx context.Context, arg string, stdin io.Reader, stdout io.Writer) (err error) {
	var spec Spec
	if err := json.Unmarshal([]byte(arg), &spec); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, stdin)
	}()

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h, closeAll, err := spec.handler(registry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	var at addrs
	ready := ops.NewReadiness(nil)
	return ops.Serve(ctx, zap.NewNop(), ready,
		ops.Server{Name: "public", Addr: local, Handler: h, Listening: func(a net.Addr) { at.Public = a.String() }},
		ops.Server{Name: "admin", Addr: local, Handler: ops.AdminHandler(registry, ready), Listening: func(a net.Addr) {
			at.Admin = a.String()
			_ = json.NewEncoder(stdout).Encode(at) // fails only when nobody waits for it any more
		}},
	)
}

const local = "127.0.0.1:0"

// handler wires what cmd/recorder does, with other parts where the kind says so.
func (s Spec) handler(registry *prometheus.Registry) (h http.Handler, closeAll func() error, err error) {
	if s.Kind == Constant {
		return http.HandlerFunc(constant), func() error { return nil }, nil
	}
	o := redisclient.Options{Mode: redisclient.Single, Addrs: []string{s.Redis}, Timeout: redisTimeout}
	plays, err := redisclient.New(o)
	if err != nil {
		return nil, nil, err
	}
	reads, err := redisclient.New(o)
	if err != nil {
		return nil, nil, err
	}
	k := keys.New("video")
	lookups, err := lookup.New(reads, lookup.Options{
		Keys: k, CountTTL: dataset.CountTTL, Cache: cacheFor, Timeout: writeTimeout, Registerer: registry,
	})
	if err != nil {
		return nil, nil, err
	}
	var rec api.Recorder
	switch s.Kind {
	case Ours, AllStatistics, WithOnline, WithUniques, WithPlays:
		o := recorder.Options{
			Keys: k, KeyTTL: dataset.KeyTTL, CountTTL: dataset.CountTTL, Timeout: writeTimeout, Registerer: registry,
			Window: dataset.Window,
		}
		if o.Statistics, err = s.statistics(k, plays); err != nil {
			return nil, nil, err
		}
		rec = recorder.New(plays, o)
	case OneCall:
		rec = oneCall{plays, k}
	case NoRedis:
		rec = noRedis{}
	default:
		return nil, nil, fmt.Errorf("no server is called %q", s.Kind)
	}
	h = api.Handler(api.Options{
		Recorder:    rec,
		Lookup:      lookups,
		BeatAfter:   func() time.Duration { return dataset.Beat },
		CORSOrigins: []string{"*"},
		CacheFor:    3 * time.Second,
		Timeout:     Deadline,
		Registerer:  registry,
	})
	return h, func() error {
		lookups.Close()
		return errors.Join(plays.Close(), reads.Close())
	}, nil
}

// constant answers as a lookup does, without looking anything up.
func constant(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"video_id":"10000000","viewers":5000,"as_of":"2026-11-30T14:00:00Z"}` + "\n"))
}
