// Package console is the operator's page of a program: who is watching, what the
// passes do, how Redis is, and what is wrong in plain words.
//
//	/console/                  the page and its files
//	/console/data              everything that it shows, as JSON
//	/console/video?id=…        one video's numbers
//	/console/runbook?entry=…   what to do about a warning
//
// It costs Redis some twenty commands a second at the most, however many pages
// are open and however many videos there are: an answer is given again for a
// second, and nothing is scanned. What cannot be had is missing from an answer,
// the rest is there. It holds no viewer id.
package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
)

// Options configure a Console.
type Options struct {
	Program string // "recorder"
	Version string

	Kind  string   // that is shown; "": there is one only
	Kinds []string // all that there are

	Keys       keys.Keys
	Lease      string // the key of the workers' lock; "": that of Keys
	Window     func() time.Duration
	Interval   func() time.Duration // from the end of a pass to the start of the next
	CountTTL   time.Duration        // how long after a complete pass its counts are known
	TimeZone   string               // "UTC": where the days of Statistics begin
	History    time.Duration        // how long Statistics.History keeps counts; 0: it is off
	Statistics Statistics
	Settings   func() []Setting
	Metrics    prometheus.Gatherer // of this program
	Files      map[string]http.Handler
	Runbook    string // Markdown; the headings' anchors are those of warnings
}

// Statistics are what is known beside counts; those that are off are nil. An
// empty video id is the site.
type Statistics struct {
	Online  Online
	Uniques Uniques
	Plays   Plays
	Top     Top
	Peaks   Peaks
	History History
}

// Online counts who is on the site.
type Online interface {
	Count(ctx context.Context) (online int64, at time.Time, err error)
}

// Uniques counts different viewers in the last hours, such as "24h".
type Uniques interface {
	Count(ctx context.Context, videoID, last string) (viewers int64, from, to time.Time, err error)
}

// Plays counts how often a video was started, in all and in each "hour" of the last ones.
type Plays interface {
	Count(ctx context.Context, videoID, per, last string) (total int64, from []time.Time, plays []int64, err error)
}

// Top lists the videos with the most viewers.
type Top interface {
	List(ctx context.Context, limit int) (videoIDs []string, viewers []int64, asOf time.Time, err error)
}

// Peaks are the largest counts of today and of all time; 0 is none.
type Peaks interface {
	Get(ctx context.Context, videoID string) (today int64, todayAt time.Time, ever int64, everAt time.Time, err error)
}

// History has the counts of the last hours, the oldest first; "" is all that is kept.
type History interface {
	Points(ctx context.Context, videoID, last string) (at []time.Time, viewers []int64, err error)
}

// Setting is a key of the configuration: whether something is on, or its value.
type Setting struct {
	Name  string `json:"name"`  // "stats.online"
	Value any    `json:"value"` // false where it is off
}

// Console answers for the page. It is safe for concurrent use.
type Console struct {
	rdb     redis.UniversalClient
	o       Options
	began   time.Time
	sites   *otter.Cache[string, *site]
	videos  *otter.Cache[string, *video]
	samples samples
}

const (
	fresh   = time.Second     // how long an answer is given again
	patient = 2 * time.Second // how long an answer waits for Redis
)

// New returns a Console that asks rdb, which should be a client of its own. Call
// Close when done with it.
func New(rdb redis.UniversalClient, o Options) (*Console, error) {
	sites, err := newCache[*site](1)
	if err != nil {
		return nil, err
	}
	videos, err := newCache[*video](maxVideos)
	if err != nil {
		return nil, err
	}
	o.Lease = cmp.Or(o.Lease, o.Keys.Lease())
	return &Console{rdb: rdb, o: o, began: time.Now(), sites: sites, videos: videos}, nil
}

const maxVideos = 1000 // whose answers are kept

func newCache[V any](size int) (*otter.Cache[string, V], error) {
	cache, err := otter.New(&otter.Options[string, V]{
		MaximumSize:      size,
		ExpiryCalculator: otter.ExpiryWriting[string, V](fresh),
	})
	if err != nil {
		return nil, fmt.Errorf("console: cache: %w", err)
	}
	return cache, nil
}

// Close stops the caches' housekeeping.
func (c *Console) Close() {
	c.sites.StopAllGoroutines()
	c.videos.StopAllGoroutines()
}

// Handler serves what is below /console/.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, file := range c.o.Files {
		mux.Handle("GET "+path, file)
	}
	mux.HandleFunc("GET /console", func(w http.ResponseWriter, r *http.Request) {
		to := url.URL{Path: "/console/", RawQuery: r.URL.RawQuery} // which may name a kind
		http.Redirect(w, r, to.String(), http.StatusFound)
	})
	mux.HandleFunc("GET /console/data", c.serveSite)
	mux.HandleFunc("GET /console/video", c.serveVideo)
	mux.HandleFunc("GET /console/runbook", c.serveRunbook)
	return mux
}

// serveSite leaves out the points of history until the time, in Unix
// milliseconds, that the page has them already.
func (c *Console) serveSite(w http.ResponseWriter, r *http.Request) {
	since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	if err != nil {
		since = 0 // none yet
	}
	s, err := c.sites.Get(r.Context(), "", otter.LoaderFunc[string, *site](func(ctx context.Context, _ string) (*site, error) {
		return c.site(ctx), nil
	}))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, s.after(since))
}

func (c *Console) serveVideo(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if err := keys.CheckVideoID(id); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v, err := c.videos.Get(r.Context(), id, otter.LoaderFunc[string, *video](func(ctx context.Context, id string) (*video, error) {
		return c.video(ctx, id), nil
	}))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer(w, v)
}

func (c *Console) serveRunbook(w http.ResponseWriter, r *http.Request) {
	entry := section(c.o.Runbook, r.URL.Query().Get("entry"))
	if entry == "" {
		http.NotFound(w, r)
		return
	}
	setHeaders(w, "text/markdown; charset=utf-8")
	_, _ = io.WriteString(w, entry) // the client has gone, then
}

func answer(w http.ResponseWriter, body any) {
	setHeaders(w, "application/json")
	_ = json.NewEncoder(w).Encode(body) // likewise
}

func setHeaders(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
}
