// Package admin is the admin listener's handler of Headcount's programs: health,
// metrics and profiles, and the operator's page.
package admin

import (
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/cmd/internal/program"
	"headcount/console"
	"headcount/docs"
	"headcount/internal/config"
	"headcount/internal/ops"
	"headcount/stats"
	"headcount/web"
)

// Admin is a handler. Call Close when nobody asks it any more.
type Admin struct {
	http.Handler
	redis   redis.UniversalClient // of its own: the page waits for no play or pass, nor they for it
	stores  []*stats.Store
	console *console.Console
}

// New returns the handler of a program.
func New(p *program.Program, ready *ops.Readiness) (_ *Admin, err error) {
	a := &Admin{}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	if a.redis, err = p.Redis(); err != nil {
		return nil, err
	}
	statistics, err := a.statistics(p)
	if err != nil {
		return nil, err
	}
	c := p.Config.Config()
	a.console, err = console.New(a.redis, console.Options{
		Program:    p.Name,
		Version:    p.Version,
		Keys:       p.Keys(),
		Window:     func() time.Duration { return p.Config.Config().Window },
		Interval:   func() time.Duration { return p.Config.Config().Worker.Interval },
		CountTTL:   c.CountTTL,
		Statistics: statistics,
		Settings:   func() []console.Setting { return settings(p.Name, p.Config.Config()) },
		Metrics:    p.Metrics,
		Files:      web.Console(),
		Runbook:    docs.Operations,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", ops.AdminHandler(p.Metrics, ready))
	mux.Handle("/console", a.console.Handler())
	mux.Handle("/console/", a.console.Handler())
	a.Handler = mux
	return a, nil
}

// Close gives back what New took.
func (a *Admin) Close() {
	if a.console != nil {
		a.console.Close()
	}
	for _, s := range a.stores {
		s.Close()
	}
	if a.redis != nil {
		_ = a.redis.Close() // nothing is under way any more
	}
}

// How long statistics are given again without asking Redis. A history grows every
// half a minute at the most, and is long.
const (
	freshNumbers = time.Second
	freshHistory = 10 * time.Second
)

// statistics reads those that the configuration switches on.
func (a *Admin) statistics(p *program.Program) (s console.Statistics, err error) {
	c := p.Config.Config()
	numbers, err := a.store(p, freshNumbers)
	if err != nil {
		return s, err
	}
	points, err := a.store(p, freshHistory)
	if err != nil {
		return s, err
	}
	if c.Stats.Online {
		online := stats.NewOnline(numbers, c.Window, c.KeyTTL)
		p.OnChange(func(c config.Config) { online.SetWindow(c.Window) })
		s.Online = online
	}
	if c.Stats.Uniques {
		s.Uniques = stats.NewUniques(numbers)
	}
	if c.Stats.Plays {
		s.Plays = stats.NewPlays(numbers, nil) // writes nothing, so nothing fails
	}
	if c.Stats.Top > 0 {
		s.Top = stats.NewTop(numbers, c.Stats.Top, c.CountTTL)
	}
	if c.Stats.Peaks {
		s.Peaks = stats.NewPeaks(numbers)
	}
	if c.Stats.History > 0 {
		s.History = stats.NewHistory(points, c.Stats.History)
	}
	return s, nil
}

func (a *Admin) store(p *program.Program, fresh time.Duration) (*stats.Store, error) {
	c := p.Config.Config()
	s, err := stats.NewStore(a.redis, stats.Options{
		Keys: p.Keys(), Zone: c.Location(), Cache: fresh, Timeout: 2 * c.Redis.Timeout,
	})
	if err == nil {
		a.stores = append(a.stores, s)
	}
	return s, err
}
