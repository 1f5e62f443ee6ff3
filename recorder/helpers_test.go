package recorder_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/recorder"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	keyTTL   = 15 * time.Minute
	countTTL = 12 * time.Minute

	// patience is for writes that are to succeed however slow the machine is.
	patience = 30 * time.Second
)

// fixture is a Recorder of a test's own with the server that it writes to.
type fixture struct {
	*recorder.Recorder
	rdb    redis.UniversalClient // the recorder's
	server *redistest.Server
	db     *redis.Client // the test's
	prefix string
}

// newFixture returns a Recorder on the shared server.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience})
}

// newFixtureOn returns a Recorder on s. The test gives the options that matter
// to it; the client is patient, so that only they end a write.
func newFixtureOn(t *testing.T, s *redistest.Server, o recorder.Options) *fixture {
	t.Helper()
	rdb, err := redisclient.New(redisclient.Options{Mode: redisclient.Single, Addrs: []string{s.Addr()}, Timeout: patience})
	if err != nil {
		t.Fatalf("redisclient.New: %v", err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	f := &fixture{rdb: rdb, server: s, db: s.Client(), prefix: redistest.Prefix(t)}
	o.Keys, o.KeyTTL, o.CountTTL = keys.New(f.prefix), keyTTL, countTTL
	f.Recorder = recorder.New(rdb, o)
	// Before the client is closed, and after the gates that tests put in.
	t.Cleanup(func() { eventually(t, "the recorder is idle", f.Idle) })
	return f
}

// The names are spelled here once more, as other programs spell them.
func (f *fixture) online(videoID string) string { return f.prefix + ":online:" + videoID }
func (f *fixture) count(videoID string) string  { return f.prefix + ":online:count:" + videoID }

func (f *fixture) mustPlay(t *testing.T, videoID, viewerID string) (recordedAt int64) {
	t.Helper()
	recordedAt, err := f.Play(t.Context(), videoID, viewerID)
	if err != nil {
		t.Fatalf("Play: %v", err)
	}
	return recordedAt
}

func (f *fixture) mustLeave(t *testing.T, videoID, viewerID string, recordedAt int64) {
	t.Helper()
	if err := f.Leave(t.Context(), videoID, viewerID, recordedAt); err != nil {
		t.Fatalf("Leave: %v", err)
	}
}

// seed writes a viewer with a value of the test's choice, as another program would.
func (f *fixture) seed(t *testing.T, videoID, viewerID string, value any) {
	t.Helper()
	if err := f.db.HSet(t.Context(), f.online(videoID), viewerID, value).Err(); err != nil {
		t.Fatalf("HSET: %v", err)
	}
}

// viewers reads a video's hash; none is an empty map.
func (f *fixture) viewers(t *testing.T, videoID string) map[string]string {
	t.Helper()
	got, err := f.db.HGetAll(t.Context(), f.online(videoID)).Result()
	if err != nil {
		t.Fatalf("HGETALL: %v", err)
	}
	return got
}

// published reads a count key; ok is false where there is none.
func (f *fixture) published(t *testing.T, videoID string) (value string, ok bool) {
	t.Helper()
	value, err := f.db.Get(t.Context(), f.count(videoID)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("GET: %v", err)
	}
	return value, err == nil
}

func (f *fixture) wantCount(t *testing.T, videoID, want string) {
	t.Helper()
	if got, ok := f.published(t, videoID); got != want || !ok {
		t.Errorf("count of %q = %q, exists %t, want %q", videoID, got, ok, want)
	}
}

func (f *fixture) wantNoKeys(t *testing.T) {
	t.Helper()
	got, err := f.db.Keys(t.Context(), f.prefix+":*").Result()
	if err != nil || len(got) > 0 {
		t.Errorf("keys = %q, %v, want none", got, err)
	}
}

// now is Redis's time.
func (f *fixture) now(t *testing.T) time.Time {
	t.Helper()
	now, err := f.db.Time(t.Context()).Result()
	if err != nil {
		t.Fatalf("TIME: %v", err)
	}
	return now
}

// expiry is when a key goes, by Redis's clock.
func (f *fixture) expiry(t *testing.T, key string) time.Time {
	t.Helper()
	at, err := f.db.PExpireTime(t.Context(), key).Result()
	if err != nil || at < 0 {
		t.Fatalf("PEXPIRETIME %s = %v, %v, want a time", key, at, err)
	}
	return time.UnixMilli(at.Milliseconds())
}

// wantTTL checks the TTL that a key got by an action between before and now.
func (f *fixture) wantTTL(t *testing.T, key string, before time.Time, least, most time.Duration) {
	t.Helper()
	after, expiry := f.now(t), f.expiry(t, key)
	if expiry.Before(before.Add(least).Truncate(time.Millisecond)) || expiry.After(after.Add(most)) {
		t.Errorf("%s expires %v to %v after it was written, want %v to %v", key, expiry.Sub(after), expiry.Sub(before), least, most)
	}
}

// gate is a hook that holds the recorder's next write until it is opened.
type gate struct {
	once    sync.Once
	entered chan struct{}
	opened  chan struct{}
}

// shut holds the next write of f.
func (f *fixture) shut(t *testing.T) *gate {
	t.Helper()
	g := &gate{entered: make(chan struct{}), opened: make(chan struct{})}
	f.rdb.AddHook(g)
	t.Cleanup(g.open)
	return g
}

// open lets the held write go, and may be called twice.
func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		select {
		case <-g.entered: // an earlier write was the one to hold
		default:
			close(g.entered)
			<-g.opened
		}
		return next(ctx, cmds)
	}
}

// batch is a set of requests that travel in one write.
type batch struct {
	f    *fixture
	gate *gate
	wg   sync.WaitGroup
	size int
}

// newBatch occupies the recorder with a play that Redis does not get yet, so
// that what the test adds waits together.
func (f *fixture) newBatch(t *testing.T) *batch {
	t.Helper()
	return f.newBatchBehind(t, func() error {
		_, err := f.Play(t.Context(), "occupied", "first")
		return err
	})
}

// newBatchBehind is newBatch with a request of the test's choice in front.
func (f *fixture) newBatchBehind(t *testing.T, first func() error) *batch {
	t.Helper()
	b := &batch{f: f, gate: f.shut(t)}
	b.wg.Go(func() {
		if err := first(); err != nil {
			t.Errorf("the request that holds the others up: %v", err)
		}
	})
	<-b.gate.entered
	return b
}

// add queues one request, after those added before.
func (b *batch) add(t *testing.T, request func()) {
	t.Helper()
	b.size++
	b.wg.Go(request)
	eventually(t, "the request is queued", func() bool { return b.f.Queued() == b.size })
}

func (b *batch) play(t *testing.T, videoID, viewerID string) {
	t.Helper()
	b.add(t, func() {
		if _, err := b.f.Play(t.Context(), videoID, viewerID); err != nil {
			t.Errorf("Play: %v", err)
		}
	})
}

func (b *batch) leave(t *testing.T, videoID, viewerID string, recordedAt int64) {
	t.Helper()
	b.add(t, func() {
		if err := b.f.Leave(t.Context(), videoID, viewerID, recordedAt); err != nil {
			t.Errorf("Leave: %v", err)
		}
	})
}

// write sends the batch and waits until every request is answered.
func (b *batch) write() {
	b.gate.open()
	b.wg.Wait()
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit.C:
			t.Fatalf("%s: not within %v", what, patience)
		case <-tick.C:
		}
	}
}
