// Package serve is the recorder's service: the public HTTP listener that
// records plays and answers lookups, and its admin listener.
package serve

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headcount/aggregator"
	"headcount/api"
	"headcount/cmd/internal/admin"
	"headcount/cmd/internal/program"
	"headcount/internal/clientip"
	"headcount/internal/config"
	"headcount/internal/ops"
	"headcount/internal/ratelimit"
	"headcount/lookup"
	"headcount/recorder"
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
	lookups, err := newLookup(p, reads, timeout)
	if err != nil {
		return err
	}
	defer lookups.Close()

	statistics, err := newStatistics(p, reads, timeout)
	if err != nil {
		return err
	}
	defer statistics.store.Close()

	limiter, err := ratelimit.New(ratelimit.Options{PerSecond: c.Recorder.RateLimit, Burst: c.Recorder.RateBurst})
	if err != nil {
		return err
	}
	defer limiter.Close()

	tokens, err := playTokens(c.Auth, p.Log)
	if err != nil {
		return err
	}
	rec := newRecorder(p, plays, timeout, statistics.recorder)
	defer flush(ctx, rec, timeout, p.Log) // when nobody is being answered any more
	if statistics.recorder.Online != nil {
		statistics.api.Site = rec
	}
	proxies := clientip.Resolver{Trusted: c.TrustedProxies()}
	public := api.Handler(api.Options{
		Recorder:    rec,
		Lookup:      lookups,
		Statistics:  statistics.api,
		Tokens:      tokens,
		BeatAfter:   func() time.Duration { return p.Config.Config().BeatAfter() },
		CORSOrigins: c.Recorder.CORSOrigins,
		CacheFor:    countCacheFor,
		Limiter:     limiter,
		ClientAddr:  func(r *http.Request) netip.Addr { return ratelimit.Client(proxies.Addr(r)) },
		Timeout:     2 * timeout, // a write in flight, and then our own
		Files:       files(c.Web.Demo),
		Registerer:  p.Metrics,
	})
	ready := ops.NewReadiness(map[string]ops.Check{"redis": program.RedisCheck(plays)})
	handler, err := admin.New(p, ready)
	if err != nil {
		return err
	}
	defer handler.Close()
	return ops.Serve(ctx, p.Log, ready,
		p.Server(ops.Server{
			Name: "public", Addr: c.Recorder.Listen, Handler: public,
			MaxConnections: c.Recorder.MaxConnections, Registerer: p.Metrics,
			Drain: c.Recorder.Drain, WriteTimeout: writeTimeout,
		}),
		p.Server(ops.Server{Name: "admin", Addr: c.Recorder.AdminListen, Handler: handler}),
	)
}

// flush writes what statistics still have to write. ctx has ended by now.
func flush(ctx context.Context, rec *recorder.Recorder, timeout time.Duration, log *zap.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := rec.Flush(ctx); err != nil {
		log.Warn("the last plays are not in the statistics", zap.Error(err))
	}
}

func newRecorder(p *program.Program, rdb redis.UniversalClient, timeout time.Duration, s recorder.Statistics) *recorder.Recorder {
	c := p.Config.Config()
	rec := recorder.New(rdb, recorder.Options{
		Keys:       p.Keys(),
		KeyTTL:     c.KeyTTL,
		CountTTL:   c.CountTTL,
		Timeout:    timeout,
		MaxViewers: c.Recorder.MaxViewers,
		Window:     c.Window,
		Statistics: s,
		Logger:     p.Log,
		Registerer: p.Metrics,
	})
	p.OnChange(func(c config.Config) { rec.SetWindow(c.Window) })
	return rec
}

// files are what browsers load.
func files(demo bool) map[string]http.Handler {
	all := web.Scripts()
	if demo {
		maps.Copy(all, web.Demo())
	}
	return all
}

func newLookup(p *program.Program, rdb redis.UniversalClient, timeout time.Duration) (*lookup.Lookup, error) {
	c := p.Config.Config()
	o := lookup.Options{
		Keys:       p.Keys(),
		CountTTL:   c.CountTTL,
		Cache:      c.Lookup.Cache,
		Timeout:    timeout,
		Registerer: p.Metrics,
	}
	if c.Lookup.OnMiss == "compute" {
		counter := aggregator.New(rdb, aggregator.Options{
			Keys:     p.Keys(),
			Window:   c.Window,
			KeyTTL:   c.KeyTTL,
			CountTTL: c.CountTTL,
			Logger:   p.Log,
		})
		p.OnChange(func(c config.Config) { counter.SetWindow(c.Window) })
		o.Counter = counter
	}
	return lookup.New(rdb, o)
}
