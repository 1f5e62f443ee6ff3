// Package serve is the recorder's service: the public HTTP listener that
// records plays and answers lookups, and its admin listener.
package serve

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"time"

	"headcount/api"
	"headcount/cmd/internal/admin"
	"headcount/cmd/internal/program"
	"headcount/internal/clientip"
	"headcount/internal/ops"
	"headcount/internal/ratelimit"
	"headcount/web"
)

// countCacheFor is how long browsers and CDNs may keep a count.
const countCacheFor = 3 * time.Second

// writeTimeout is for clients that do not read their answers. It begins before a
// body is read, for which there are 10 s.
const writeTimeout = 15 * time.Second

// Service serves until ctx ends.
func Service(ctx context.Context, p *program.Program) error {
	plays, err := p.Redis()
	if err != nil {
		return err
	}
	defer func() { _ = plays.Close() }() // nothing is under way any more
	reads, err := p.Redis()              // of its own: a count never waits for a play, nor a play for a count
	if err != nil {
		return err
	}
	defer func() { _ = reads.Close() }()

	c := p.Config.Config()
	// Redis may take its time-out once, and once more for a repeat.
	timeout := 2 * c.Redis.Timeout
	limiter, err := ratelimit.New(ratelimit.Options{PerSecond: c.Recorder.RateLimit, Burst: c.Recorder.RateBurst})
	if err != nil {
		return err
	}
	defer limiter.Close()

	tokens, err := playTokens(c, p.Log)
	if err != nil {
		return err
	}
	all := kinds{Program: p, plays: plays, reads: reads, timeout: timeout, tokens: tokens}
	defer func() { all.close(ctx) }() // when nobody is being answered any more
	if err := all.build(); err != nil {
		return err
	}
	proxies := clientip.Resolver{Trusted: c.TrustedProxies()}
	options := api.Options{
		Tokens:      tokens(""),
		BeatAfter:   func() time.Duration { return p.Config.Config().BeatAfter() },
		CORSOrigins: c.Recorder.CORSOrigins,
		CacheFor:    countCacheFor,
		Limiter:     limiter,
		ClientAddr:  func(r *http.Request) netip.Addr { return ratelimit.Client(proxies.Addr(r)) },
		Timeout:     2 * timeout, // a write in flight, and then our own
		Files:       files(c.Web.Demo),
		Registerer:  p.Metrics,
	}
	all.serve(&options)
	ready := ops.NewReadiness(map[string]ops.Check{"redis": program.RedisCheck(plays)})
	handler, err := admin.New(p, ready)
	if err != nil {
		return err
	}
	defer handler.Close()
	return ops.Serve(ctx, p.Log, ready,
		p.Server(ops.Server{
			Name: "public", Addr: c.Recorder.Listen, Handler: api.Handler(options),
			MaxConnections: c.Recorder.MaxConnections, Registerer: p.Metrics,
			Drain: c.Recorder.Drain, WriteTimeout: writeTimeout,
		}),
		p.Server(ops.Server{Name: "admin", Addr: c.Recorder.AdminListen, Handler: handler}),
	)
}

// files are what browsers load.
func files(demo bool) map[string]http.Handler {
	all := web.Scripts()
	if demo {
		maps.Copy(all, web.Demo())
	}
	return all
}
