package console

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/lastpass"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	interval = 30 * time.Second
	window   = 10 * time.Minute
	countTTL = 12 * time.Minute
)

// noon is when what the tests' statistics tell of was.
var noon = time.UnixMilli(1_700_000_000_000)

// numbers are statistics that say the same of every video.
type numbers struct {
	err   error
	asked atomic.Int64
	wait  chan struct{} // nil: answers at once
}

func (n *numbers) answer() error {
	n.asked.Add(1)
	if n.wait != nil {
		<-n.wait
	}
	return n.err
}

type (
	onlineNumbers  struct{ *numbers }
	uniquesNumbers struct{ *numbers }
	playsNumbers   struct{ *numbers }
	topNumbers     struct{ *numbers }
	peaksNumbers   struct{ *numbers }
	historyNumbers struct{ *numbers }
)

func (n onlineNumbers) Count(context.Context) (int64, time.Time, error) {
	return 47, noon, n.answer()
}

func (n uniquesNumbers) Count(_ context.Context, _, last string) (int64, time.Time, time.Time, error) {
	if last != "24h" {
		return 0, noon, noon, errors.New("another time was asked for")
	}
	return 30, noon, noon, n.answer()
}

func (n playsNumbers) Count(_ context.Context, _, per, last string) (int64, []time.Time, []int64, error) {
	if per != "hour" || last != "24h" {
		return 0, nil, nil, errors.New("another time was asked for")
	}
	return 900, []time.Time{noon, noon}, []int64{5, 7}, n.answer()
}

func (n topNumbers) List(context.Context, int) ([]string, []int64, time.Time, error) {
	return []string{"a", "b/c"}, []int64{9, 4}, noon, n.answer()
}

func (n peaksNumbers) Get(context.Context, string) (int64, time.Time, int64, time.Time, error) {
	return 20, noon, 50, time.Time{}, n.answer()
}

func (n historyNumbers) Points(_ context.Context, _, last string) ([]time.Time, []int64, error) {
	if last == "24h" {
		return nil, nil, &keys.IDError{Field: "last", Reason: "is longer than what is kept"}
	}
	return []time.Time{noon, noon.Add(time.Minute)}, []int64{3, 8}, n.answer()
}

func (n *numbers) all() Statistics {
	return Statistics{
		Online: onlineNumbers{n}, Uniques: uniquesNumbers{n}, Plays: playsNumbers{n},
		Top: topNumbers{n}, Peaks: peaksNumbers{n}, History: historyNumbers{n},
	}
}

// env is a Console on a real Redis under a prefix of its own.
type env struct {
	*testing.T
	*Console
	raw redis.UniversalClient
	k   keys.Keys
	reg *prometheus.Registry
}

func newEnv(t *testing.T, s Statistics) *env {
	t.Helper()
	return newEnvOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{redistest.Shared(t).Addr()}, Timeout: time.Second}, s)
}

func newEnvOn(t *testing.T, o redisclient.Options, s Statistics) *env {
	t.Helper()
	rdb, err := redisclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	e := &env{T: t, raw: rdb, k: keys.New(redistest.Prefix(t)), reg: prometheus.NewRegistry()}
	e.Console, err = New(rdb, Options{
		Program: "recorder", Version: "1.2.3", Keys: e.k, CountTTL: countTTL, TimeZone: "Asia/Shanghai", History: time.Hour, Statistics: s, Metrics: e.reg,
		Window:   func() time.Duration { return window },
		Interval: func() time.Duration { return interval },
		Settings: func() []Setting { return []Setting{{"stats.online", true}, {"stats.top", 1000}} },
		Runbook:  "# Operations\n\n### HeadcountNoLeader\n\nStart a worker.\n\n## Next\n\nMore.\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// redisNow is Redis's clock, Unix seconds.
func (e *env) redisNow() int64 {
	e.Helper()
	now, err := e.raw.Time(e.Context()).Result()
	e.must(err)
	return now.Unix()
}

// passed writes down a pass that was so long ago.
func (e *env) passed(ago time.Duration, change func(*lastpass.Pass)) lastpass.Pass {
	e.Helper()
	at := e.redisNow() - int64(ago/time.Second)
	p := lastpass.Pass{
		StartedAt: at, FinishedAt: at, TookMS: 12, Videos: 2, Viewers: 13, Read: 1, Skipped: 1, Evicted: 4, Holder: "host:7",
	}
	if change != nil {
		change(&p)
	}
	e.must(lastpass.Write(e.Context(), e.raw, e.k.LastPass(), time.Hour, p))
	return p
}

func (e *env) lease() {
	e.Helper()
	e.must(e.raw.Set(e.Context(), e.k.Lease(), "token host:7", time.Minute).Err())
}

func (e *env) get(path string) *httptest.ResponseRecorder {
	e.Helper()
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequestWithContext(e.Context(), http.MethodGet, path, nil))
	return w
}

// fetch gets JSON as the page does.
func (e *env) fetch(path string) map[string]any {
	e.Helper()
	w := e.get(path)
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		e.Fatalf("GET %s: %d %s, %v", path, w.Code, w.Body, err)
	}
	return got
}

func (e *env) fetchVideo(id string) map[string]any {
	e.Helper()
	return e.fetch("/console/video?id=" + url.QueryEscape(id))
}

// kinds are those of the warnings of an answer.
func kinds(answer map[string]any) []string {
	all := []string{}
	for _, w := range answer["warnings"].([]any) {
		all = append(all, w.(map[string]any)["kind"].(string))
	}
	return all
}

func noRedis(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no Redis here")
}
