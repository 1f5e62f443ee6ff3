package schedule

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/cmd/internal/program"
	"headcount/internal/config"
	"headcount/lock"
	"headcount/stats"
)

// Once makes one pass under the lease, for cron and the like. That another
// worker holds the lease is not an error: that worker makes the passes.
func Once(ctx context.Context, p *program.Program) error {
	d, err := connect(p)
	if err != nil {
		return err
	}
	defer d.close()
	p.WarnOfEviction(ctx, d.redis) // if Redis does not answer now, the lease tells

	term, err := d.lease.Acquire(ctx)
	if errors.Is(err, lock.ErrHeld) {
		p.Log.Info("no pass made: another worker holds the lease")
		return nil
	}
	w := newWorker(p.Log, d.lease, d.kinds, 0, p.Metrics)
	if errors.Is(err, lock.ErrFull) {
		p.Log.Warn(fullMessage)
		return w.pass(ctx, withoutLease)
	}
	if err != nil {
		return err
	}
	err = w.pass(term.Context(), term.Held)
	w.release(term)
	return err
}

// dependencies are what a worker needs.
type dependencies struct {
	redis redis.UniversalClient // for the lease, so that a refresh never waits for a pass
	scan  redis.UniversalClient // for the passes
	lease *lock.Lease
	stats []*stats.Store
	kinds []counted
}

func connect(p *program.Program) (*dependencies, error) {
	c := p.Config.Config()
	var d dependencies
	var err error
	if d.redis, err = p.Redis(); err != nil {
		return nil, err
	}
	if d.scan, err = p.Redis(); err != nil {
		d.close()
		return nil, err
	}
	kinds := p.Kinds()
	d.lease = lock.New(d.redis, lock.Options{
		Key:     kinds[0].Keys.Lease(),
		TTL:     c.Lease.TTL,
		Timeout: c.Redis.Timeout,
	})
	for _, k := range kinds {
		if err := d.add(p, k, len(kinds) > 1); err != nil {
			d.close()
			return nil, err
		}
	}
	return &d, nil
}

// add adds a kind, perhaps one of several.
func (d *dependencies) add(p *program.Program, k program.Kind, several bool) error {
	c := p.Config.Config()
	first := len(d.kinds) == 0
	observe, store, err := observe(p, k, d.scan, first)
	if err != nil {
		return err
	}
	d.stats = append(d.stats, store)
	passes := aggregator.New(d.scan, aggregator.Options{
		Keys:       k.Keys,
		Shared:     several,
		Window:     c.Window,
		KeyTTL:     c.KeyTTL,
		CountTTL:   c.CountTTL,
		Holder:     lock.Holder(),
		Logger:     k.Log,
		Registerer: k.Metrics,
		Observe:    observe,
	})
	p.OnChange(func(c config.Config) { passes.SetWindow(c.Window) })
	d.kinds = append(d.kinds, counted{k.Log, passes})
	return nil
}

func (d *dependencies) close() {
	for _, s := range d.stats {
		s.Close()
	}
	for _, rdb := range []redis.UniversalClient{d.redis, d.scan} {
		if rdb != nil {
			_ = rdb.Close() // nothing is under way any more
		}
	}
}
