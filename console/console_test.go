package console

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"headcount/internal/lastpass"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func TestSite(t *testing.T) {
	t.Parallel()
	e := newEnv(t, new(numbers).all())
	e.lease()
	first := e.passed(time.Minute, nil)
	last := e.passed(10*time.Second, nil)
	got := e.fetch("/console/data")
	if now, _ := got["now"].(float64); int64(now)/1000 < last.FinishedAt {
		t.Errorf("now = %v, want Redis's clock", got["now"])
	}
	delete(got, "now")
	delete(got, "redis")
	pass := func(p lastpass.Pass) map[string]any {
		return map[string]any{
			"started_at": float64(p.StartedAt * 1000), "finished_at": float64(p.FinishedAt * 1000), "took_ms": 12., "videos": 2., "viewers": 13.,
			"read": 1., "skipped": 1., "evicted": 4., "errors": 0., "holder": "host:7",
		}
	}
	at := float64(noon.UnixMilli())
	want := map[string]any{
		"program": "recorder", "version": "1.2.3", "window_s": 600., "interval_ms": 30000., "history_ms": 3600000.,
		"warnings": []any{},
		"viewers":  map[string]any{"now": 13., "videos": 2., "as_of": float64(last.FinishedAt * 1000)},
		"online":   map[string]any{"value": 47.},
		"uniques":  map[string]any{"value": 30.},
		"plays":    map[string]any{"value": map[string]any{"total": 900., "day": 12.}},
		"peaks":    map[string]any{"value": map[string]any{"today": 20., "today_at": at, "ever": 50., "ever_at": nil, "time_zone": "Asia/Shanghai"}},
		"top":      map[string]any{"value": []any{map[string]any{"video_id": "a", "viewers": 9.}, map[string]any{"video_id": "b/c", "viewers": 4.}}},
		"history":  map[string]any{"value": map[string]any{"at": []any{at, at + 60000}, "viewers": []any{3., 8.}}},
		"leader":   map[string]any{"holder": "host:7", "since": float64(first.StartedAt * 1000), "held": true},
		"passes":   map[string]any{"value": []any{pass(last), pass(first)}},
		"rates":    nil,
		"settings": []any{map[string]any{"name": "stats.online", "value": true}, map[string]any{"name": "stats.top", "value": 1000.}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// A page is sent the points of history that it does not have.
func TestSiteSince(t *testing.T) {
	t.Parallel()
	e := newEnv(t, new(numbers).all())
	at := float64(noon.UnixMilli())
	for path, want := range map[string][]any{
		"/console/data":                     {at, at + 60000},
		"/console/data?since=x":             {at, at + 60000},
		"/console/data?since=1699999999999": {at, at + 60000},
		"/console/data?since=1700000000000": {at + 60000},
		"/console/data?since=1700000060000": {},
	} {
		history := e.fetch(path)["history"].(map[string]any)["value"].(map[string]any)
		if diff := cmp.Diff(want, history["at"]); diff != "" {
			t.Errorf("%s: points (-want +got):\n%s", path, diff)
		}
	}
}

func TestVideo(t *testing.T) {
	t.Parallel()
	e := newEnv(t, new(numbers).all())
	last := e.passed(10*time.Second, nil)
	const id = `a/b?c&日本"<b>`
	e.must(e.raw.Set(t.Context(), e.k.Count(id), 9, time.Hour).Err())
	got := e.fetchVideo(id)
	delete(got, "now")
	at := float64(noon.UnixMilli())
	want := map[string]any{
		"video_id": id,
		"viewers":  map[string]any{"now": 9., "as_of": float64(last.FinishedAt * 1000)},
		"uniques":  map[string]any{"value": 30.},
		"plays":    map[string]any{"value": map[string]any{"total": 900., "day": 12.}},
		"peaks":    map[string]any{"value": map[string]any{"today": 20., "today_at": at, "ever": 50., "ever_at": nil, "time_zone": "Asia/Shanghai"}},
		"history":  map[string]any{"value": map[string]any{"at": []any{at, at + 60000}, "viewers": []any{3., 8.}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// A video without a count has nobody, as far as passes are known to be complete.
func TestVideoWithoutCount(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Statistics{})
	if got := e.fetchVideo("unknown")["viewers"].(map[string]any); got["now"] != nil || got["as_of"] != nil {
		t.Errorf("viewers without any pass = %v, want them unknown", got)
	}
	e.passed(countTTL+time.Minute, nil)
	if got := e.fetchVideo("old")["viewers"].(map[string]any); got["now"] != nil || got["as_of"] != nil {
		t.Errorf("viewers after an old pass = %v, want them unknown", got)
	}
	last := e.passed(time.Minute, nil)
	if got := e.fetchVideo("none")["viewers"].(map[string]any); got["now"] != 0. || got["as_of"] != float64(last.FinishedAt*1000) {
		t.Errorf("viewers = %v, want 0 as of the pass", got)
	}
}

func TestWhatIsOffAndWhatFails(t *testing.T) {
	t.Parallel()
	figures := map[string][]string{
		"/console/data":       {"online", "uniques", "plays", "peaks", "top", "history"},
		"/console/video?id=a": {"uniques", "plays", "peaks", "history"},
	}
	for want, statistics := range map[string]Statistics{
		"off":    {},
		"failed": (&numbers{err: errors.New("no answer")}).all(),
	} {
		e := newEnv(t, statistics)
		for path, names := range figures {
			got := e.fetch(path)
			for _, name := range names {
				if diff := cmp.Diff(map[string]any{want: true}, got[name]); diff != "" {
					t.Errorf("%s of %s (-want +got):\n%s", name, path, diff)
				}
			}
		}
	}
}

// What a partial pass found is not how many are watching.
func TestViewersAreThoseOfTheLastCompletePass(t *testing.T) {
	t.Parallel()
	partial := func(p *lastpass.Pass) { p.Errors, p.Viewers = 3, 1 }
	e := newEnv(t, Statistics{})
	complete := e.passed(time.Minute, nil)
	e.passed(time.Second, partial)
	got := e.fetch("/console/data")
	want := map[string]any{"now": 13., "videos": 2., "as_of": float64(complete.FinishedAt * 1000)}
	if diff := cmp.Diff(want, got["viewers"]); diff != "" {
		t.Errorf("viewers (-want +got):\n%s", diff)
	}

	e = newEnv(t, new(numbers).all()) // and when none of those listed is complete, the history knows
	complete = e.passed(time.Minute, nil)
	for range 20 {
		e.passed(time.Second, partial)
	}
	want = map[string]any{"now": 8., "as_of": float64(complete.FinishedAt * 1000)}
	if diff := cmp.Diff(want, e.fetch("/console/data")["viewers"]); diff != "" {
		t.Errorf("viewers after twenty partial passes (-want +got):\n%s", diff)
	}
}

// Redis is down: what this program knows itself is there, and the rest says that
// it is not known.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnvOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{s.Addr()}, Timeout: time.Second}, Statistics{})
	prometheus.WrapRegistererWith(prometheus.Labels{"outcome": "recorded"}, e.reg).
		MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: metricPlays}))
	s.Kill(t)
	got := e.fetch("/console/data")
	if diff := cmp.Diff([]string{"redis_unreachable"}, kinds(got)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got["now"] != nil || got["rates"] == nil || len(got["settings"].([]any)) != 2 {
		t.Errorf("now %v, rates %v, settings %v; want none, some and 2", got["now"], got["rates"], got["settings"])
	}
	if diff := cmp.Diff(map[string]any{"failed": true}, got["passes"]); diff != "" {
		t.Errorf("passes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"now": nil, "as_of": nil}, got["viewers"]); diff != "" {
		t.Errorf("viewers (-want +got):\n%s", diff)
	}
	if got := e.fetchVideo("a")["viewers"]; !cmp.Equal(got, map[string]any{"now": nil, "as_of": nil}) {
		t.Errorf("viewers of a video = %v, want them unknown", got)
	}
}

func TestRedisMasters(t *testing.T) {
	t.Parallel()
	single := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
	cluster := redistest.SharedCluster(t)
	for name, test := range map[string]struct {
		o       redisclient.Options
		masters int
		limit   float64
		policy  string
	}{
		"single":  {redisclient.Options{Mode: redisclient.Single, Addrs: []string{single.Addr()}}, 1, 100 << 20, "volatile-lru"},
		"cluster": {redisclient.Options{Mode: redisclient.Cluster, Addrs: cluster.Addrs()}, 3, 0, "noeviction"},
	} {
		test.o.Timeout = time.Second
		state := newEnvOn(t, test.o, Statistics{}).fetch("/console/data")["redis"].(map[string]any)
		masters := state["masters"].([]any)
		if len(masters) != test.masters || state["error"] != nil {
			t.Errorf("%s: %d masters, error %v; want %d and none", name, len(masters), state["error"], test.masters)
		}
		for _, one := range masters {
			m := one.(map[string]any)
			if latency, ok := m["latency_ms"].(float64); !ok || latency < 0 {
				t.Errorf("%s: latency = %v, want milliseconds", name, m["latency_ms"])
			}
			if used, ok := m["used_bytes"].(float64); !ok || used < 100_000 {
				t.Errorf("%s: used = %v, want bytes", name, m["used_bytes"])
			}
			if m["max_bytes"] != test.limit || m["policy"] != test.policy || !strings.HasPrefix(m["addr"].(string), "127.0.0.1:") {
				t.Errorf("%s: %v, want a limit of %v and %s", name, m, test.limit, test.policy)
			}
		}
	}
}

// Many pages cost what one costs.
func TestAnswersAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &numbers{wait: make(chan struct{})}
		rdb := redis.NewClient(&redis.Options{Dialer: noRedis, DialerRetries: 1, MaxRetries: -1, DisableIdentity: true})
		defer func() { _ = rdb.Close() }()
		c, err := New(rdb, Options{
			Statistics: Statistics{Online: onlineNumbers{n}, Peaks: peaksNumbers{n}}, Metrics: prometheus.NewRegistry(),
			Window: func() time.Duration { return window }, Interval: func() time.Duration { return interval },
			Settings: func() []Setting { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		e := &env{T: t, Console: c}
		var pages sync.WaitGroup
		for range 10 {
			pages.Go(func() { e.get("/console/data") })
			pages.Go(func() { e.get("/console/video?id=a") })
		}
		synctest.Wait()
		close(n.wait)
		pages.Wait()
		<-time.After(999 * time.Millisecond)
		e.get("/console/data")
		const both, oneMore = 3, 2 // online users and the site's peaks, and the video's
		if got := n.asked.Load(); got != both {
			t.Errorf("twenty questions at once, and one more, asked statistics %d times, want %d", got, both)
		}
		<-time.After(2 * time.Millisecond)
		e.get("/console/data")
		if got := n.asked.Load(); got != both+oneMore {
			t.Errorf("after a second, statistics were asked %d times, want %d", got, both+oneMore)
		}
	})
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	e := newEnv(t, Statistics{})
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"/console":                                 {http.StatusFound, "<a href=\"/console/\">Found</a>.\n\n"},
		"/console?kind=live":                       {http.StatusFound, "<a href=\"/console/?kind=live\">Found</a>.\n\n"},
		"/console/video":                           {http.StatusBadRequest, "video_id: is missing; it takes 1 to 256 bytes\n"},
		"/console/video?id=count:a":                {http.StatusBadRequest, "video_id: must not begin with \"count:\", which is reserved for count keys\n"},
		"/console/runbook?entry=headcountnoleader": {http.StatusOK, "### HeadcountNoLeader\n\nStart a worker."},
		"/console/runbook?entry=x":                 {http.StatusNotFound, "404 page not found\n"},
		"/console/runbook":                         {http.StatusNotFound, "404 page not found\n"},
		"/console/other":                           {http.StatusNotFound, "404 page not found\n"},
	} {
		got := e.get(path)
		if got.Code != want.code || (want.body != "" && got.Body.String() != want.body) {
			t.Errorf("%s: %d %q, want %d %q", path, got.Code, got.Body, want.code, want.body)
		}
	}
	if got := e.get("/console/data").Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q, want no-store", got)
	}
}
