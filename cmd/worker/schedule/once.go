package schedule

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/cmd/internal/program"
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
	w := newWorker(p.Log, d.lease, d.passes, 0, p.Metrics)
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
	redis  redis.UniversalClient // for the lease, so that a refresh never waits for a pass
	scan   redis.UniversalClient // for the passes
	lease  *lock.Lease
	stats  *stats.Store
	passes *aggregator.Aggregator
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
	d.lease = lock.New(d.redis, lock.Options{
		Key:     p.Keys().Lease(),
		TTL:     c.Lease.TTL,
		Timeout: c.Redis.Timeout,
	})
	observe, store, err := observe(p, d.scan)
	if err != nil {
		d.close()
		return nil, err
	}
	d.stats = store
	d.passes = aggregator.New(d.scan, aggregator.Options{
		Keys:       p.Keys(),
		Window:     c.Window,
		KeyTTL:     c.KeyTTL,
		CountTTL:   c.CountTTL,
		Holder:     lock.Holder(),
		Logger:     p.Log,
		Registerer: p.Metrics,
		Observe:    observe,
	})
	return &d, nil
}

func (d *dependencies) close() {
	if d.stats != nil {
		d.stats.Close()
	}
	for _, rdb := range []redis.UniversalClient{d.redis, d.scan} {
		if rdb != nil {
			_ = rdb.Close() // nothing is under way any more
		}
	}
}
