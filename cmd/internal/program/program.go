// Package program is what Headcount's programs have in common: they read their
// configuration, keep a log and metrics, and run services until they are told
// to stop.
package program

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"headcount/internal/config"
	"headcount/internal/ops"
	"headcount/internal/redisclient"
)

// Program is a program that has started.
type Program struct {
	Name    string // "recorder"
	Version string
	Config  *config.Source
	Log     *zap.Logger
	Metrics *prometheus.Registry

	// Listening, if set before Run, is told each listener's address.
	Listening func(listener string, addr net.Addr)

	level zap.AtomicLevel
	tls   *tls.Config // of connections to Redis; nil: not encrypted

	mu       sync.Mutex
	onChange []func(config.Config)
}

// Service is a part of a program that runs until ctx ends.
type Service func(ctx context.Context, p *Program) error

// Start reads the configuration. It returns config.ErrDone when the program was
// only asked something, such as --version, and has answered.
func Start(o config.Options) (*Program, error) {
	source, err := config.Load(o)
	if err != nil {
		return nil, err
	}
	c := source.Config()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	log, level, err := ops.NewLogger(ops.CountErrors(o.Stdout, metrics), c.Log.Level, c.Log.Format)
	if err != nil {
		return nil, err
	}
	encryption, err := redisTLS(c.Redis)
	if err != nil {
		return nil, err
	}
	log.Info("starting", zap.String("program", o.Program), zap.String("version", o.Version),
		zap.String("redis_mode", c.Redis.Mode), zap.Strings("redis_addrs", c.Redis.Addrs), prefixField(c))
	return &Program{Name: o.Program, Version: o.Version, Config: source, Log: log, Metrics: metrics, level: level, tls: encryption}, nil
}

// prefixField is the prefix, or where they are listed the kinds, each of which is one.
func prefixField(c config.Config) zap.Field {
	if len(c.Kinds) > 0 {
		return zap.Strings("kinds", c.Kinds)
	}
	return zap.String("prefix", c.Prefix)
}

func redisTLS(c config.Redis) (*tls.Config, error) {
	if !c.TLS {
		return nil, nil
	}
	return redisclient.TLSFiles{CA: c.TLSCAFile, Cert: c.TLSCertFile, Key: c.TLSKeyFile}.Config()
}

// OnChange calls apply with the configuration in force, and with each new one:
// one that changed while a service was being built is not missed.
func (p *Program) OnChange(apply func(config.Config)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	apply(p.Config.Config())
	p.onChange = append(p.onChange, apply)
}

// Run runs the services, and the watch over the configuration, until ctx ends
// or one of them fails. Stopping because ctx ended is not an error.
func (p *Program) Run(ctx context.Context, services ...Service) error {
	p.OnChange(p.setLevel)
	running, ctx := errgroup.WithContext(ctx)
	for _, service := range services {
		running.Go(func() error { return service(ctx, p) })
	}
	running.Go(func() error {
		return p.Config.Watch(ctx, config.WatchOptions{
			Logger:     p.Log,
			Registerer: p.Metrics,
			Apply:      p.apply,
		})
	})
	err := running.Wait()
	p.Log.Info("stopped")
	return err
}

func (p *Program) apply(c config.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, apply := range p.onChange {
		apply(c)
	}
}

func (p *Program) setLevel(c config.Config) {
	if level, err := zap.ParseAtomicLevel(c.Log.Level); err == nil { // checked when the file was read
		p.level.SetLevel(level.Level())
	}
}

// Redis returns a new client. Work that must not wait for other work gets a
// client of its own.
func (p *Program) Redis() (redis.UniversalClient, error) {
	c := p.Config.Config().Redis
	return redisclient.New(redisclient.Options{
		Mode:       c.Mode,
		Addrs:      c.Addrs,
		MasterName: c.MasterName,
		Username:   c.Username,
		Password:   c.Password,
		DB:         c.DB,
		TLS:        p.tls,
		Timeout:    c.Timeout,
	})
}

// RedisCheck is the readiness of Redis as rdb sees it.
func RedisCheck(rdb redis.UniversalClient) ops.Check {
	return func(ctx context.Context) (string, error) {
		if err := rdb.Ping(ctx).Err(); err != nil {
			return "", fmt.Errorf("unreachable: %w", err)
		}
		return "ok", nil
	}
}

// Server is ops.Server for this program.
func (p *Program) Server(s ops.Server) ops.Server {
	s.Listening = func(addr net.Addr) {
		if p.Listening != nil {
			p.Listening(s.Name, addr)
		}
	}
	return s
}
