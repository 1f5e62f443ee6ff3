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
	redis    redis.UniversalClient // of its own: the page waits for no play or pass, nor they for it
	stores   []*stats.Store
	online   *stats.Online // of the site, kept by the first kind; nil: off
	consoles []*console.Console
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
	mux := http.NewServeMux()
	mux.Handle("/", ops.AdminHandler(p.Metrics, ready))
	page, err := a.console(p)
	if err != nil {
		return nil, err
	}
	mux.Handle("/console", page)
	mux.Handle("/console/", page)
	a.Handler = mux
	return a, nil
}

// console is the operator's page. Of several kinds it shows the one that is asked
// for by ?kind=, else the first.
func (a *Admin) console(p *program.Program) (http.Handler, error) {
	pages := make(map[string]http.Handler)
	for i, k := range p.Kinds() {
		c, err := a.newConsole(p, k)
		if err != nil {
			return nil, err
		}
		pages[k.Name] = c.Handler()
		if i == 0 {
			pages[""] = pages[k.Name]
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Query().Get("kind")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		page.ServeHTTP(w, r)
	}), nil
}

func (a *Admin) newConsole(p *program.Program, k program.Kind) (*console.Console, error) {
	statistics, err := a.statistics(p, k)
	if err != nil {
		return nil, err
	}
	c := p.Config.Config()
	page, err := console.New(a.redis, console.Options{
		Program:    p.Name,
		Version:    p.Version,
		Kind:       k.Name,
		Kinds:      c.Kinds,
		Keys:       k.Keys,
		Lease:      p.Kinds()[0].Keys.Lease(),
		Window:     func() time.Duration { return p.Config.Config().Window },
		Interval:   func() time.Duration { return p.Config.Config().Worker.Interval },
		CountTTL:   c.CountTTL,
		TimeZone:   c.Stats.TimeZone,
		History:    c.Stats.History,
		Statistics: statistics,
		Settings:   func() []console.Setting { return settings(p.Name, p.Config.Config()) },
		Metrics:    k.Gatherer,
		Files:      web.Console(),
		Runbook:    docs.Operations,
	})
	if err == nil {
		a.consoles = append(a.consoles, page)
	}
	return page, err
}

// Close gives back what New took.
func (a *Admin) Close() {
	for _, c := range a.consoles {
		c.Close()
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
func (a *Admin) statistics(p *program.Program, k program.Kind) (s console.Statistics, err error) {
	c := p.Config.Config()
	numbers, err := a.store(p, k, freshNumbers)
	if err != nil {
		return s, err
	}
	points, err := a.store(p, k, freshHistory)
	if err != nil {
		return s, err
	}
	if c.Stats.Online {
		if a.online == nil {
			online := stats.NewOnline(numbers, c.Window, c.KeyTTL)
			p.OnChange(func(c config.Config) { online.SetWindow(c.Window) })
			a.online = online
		}
		s.Online = a.online
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

func (a *Admin) store(p *program.Program, k program.Kind, fresh time.Duration) (*stats.Store, error) {
	c := p.Config.Config()
	s, err := stats.NewStore(a.redis, stats.Options{
		Keys: k.Keys, Zone: c.Location(), Cache: fresh, Timeout: 2 * c.Redis.Timeout,
	})
	if err == nil {
		a.stores = append(a.stores, s)
	}
	return s, err
}
