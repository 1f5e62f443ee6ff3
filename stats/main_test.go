package stats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/recorder"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	window   = 10 * time.Minute
	keyTTL   = 15 * time.Minute
	countTTL = 12 * time.Minute
	patience = 30 * time.Second
)

// env is a prefix of its own on a real Redis, with a recorder that writes all
// its statistics.
type env struct {
	*testing.T
	*recorder.Recorder
	rdb      redis.UniversalClient // the recorder's
	raw      redis.UniversalClient // the test's
	k        keys.Keys
	store    *Store
	failures *Failures
	online   *Online
	uniques  *Uniques
	plays    *Plays
}

// onEach runs a test on a single server and on a cluster of three masters.
func onEach(t *testing.T, test func(e *env)) {
	t.Helper()
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		test(newEnv(t, recorder.Options{}))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		o := redisclient.Options{Mode: redisclient.Cluster, Addrs: redistest.SharedCluster(t).Addrs()}
		test(newEnvOn(t, o, recorder.Options{}))
	})
}

func newEnv(t *testing.T, o recorder.Options) *env {
	t.Helper()
	return newEnvOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{redistest.Shared(t).Addr()}}, o)
}

func newEnvOn(t *testing.T, c redisclient.Options, o recorder.Options) *env {
	t.Helper()
	c.Timeout = patience
	e := &env{T: t, k: keys.New(redistest.Prefix(t)), rdb: connect(t, c), raw: connect(t, c)}
	e.store = e.newStore(Options{})
	var err error
	e.failures, err = NewFailures(nil, nil)
	e.must(err)
	e.online, e.uniques, e.plays = NewOnline(e.store, window, keyTTL), NewUniques(e.store), NewPlays(e.store, e.failures)
	o.Keys, o.KeyTTL, o.CountTTL, o.Window, o.Timeout = e.k, keyTTL, countTTL, window, patience
	o.Statistics = recorder.Statistics{Online: e.online, Uniques: e.uniques, Plays: e.plays, Failed: e.failures.Note}
	e.Recorder = recorder.New(e.rdb, o)
	return e
}

// newStore returns another Store on the same keys.
func (e *env) newStore(o Options) *Store {
	e.Helper()
	o.Keys, o.Timeout = e.k, patience
	s, err := NewStore(e.raw, o)
	e.must(err)
	e.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, o redisclient.Options) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) play(videoID, viewerID string) {
	e.Helper()
	_, err := e.Play(e.Context(), videoID, viewerID)
	e.must(err)
}

// playMany has n viewers play a video, who are numbered from the first on.
func (e *env) playMany(videoID string, first, n int) {
	e.Helper()
	videos, viewers := make([]string, n), make([]string, n)
	for i := range n {
		videos[i], viewers[i] = videoID, "u"+strconv.Itoa(first+i)
	}
	_, errs := e.PlayAll(e.Context(), videos, viewers)
	e.must(errors.Join(errs...))
}

// redisNow is Redis's clock.
func (e *env) redisNow() time.Time {
	e.Helper()
	now, err := e.raw.Time(e.Context()).Result()
	e.must(err)
	return now.UTC()
}

func (e *env) wantTTL(key string, least, most time.Duration) {
	e.Helper()
	got, err := e.raw.TTL(e.Context(), key).Result()
	e.must(err)
	if got < least || got > most {
		e.Errorf("TTL of %q = %v, want %v to %v", key, got, least, most)
	}
}

func (e *env) wantFailures(statistic string, want float64) {
	e.Helper()
	if got := testutil.ToFloat64(e.failures.errors.WithLabelValues(statistic)); got != want {
		e.Errorf("failures of %s = %v, want %v", statistic, got, want)
	}
}

// wantBadInput checks that an error tells the caller what is wrong.
func wantBadInput(t *testing.T, err error, want string) {
	t.Helper()
	bad, ok := errors.AsType[interface {
		error
		BadInput() (field, reason string)
	}](err)
	if !ok {
		t.Errorf("error = %v, want one of bad input", err)
		return
	}
	if field, reason := bad.BadInput(); field+": "+reason != want {
		t.Errorf("error = %s: %s, want %s", field, reason, want)
	}
}

// answerLoss is a hook that has Redis carry out pipelines, while it loses the answers.
type answerLoss struct {
	lossy atomic.Bool
	lost  atomic.Int64
}

var errLost = errors.New("answer lost")

func (l *answerLoss) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (l *answerLoss) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (l *answerLoss) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if !l.lossy.Load() {
			return err
		}
		for _, cmd := range cmds {
			if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
				return err
			}
			cmd.SetErr(fmt.Errorf("%w", errLost))
		}
		l.lost.Add(1)
		return errLost
	}
}
