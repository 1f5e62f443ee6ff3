package modeltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/lookup"
	"headcount/recorder"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	window   = 10 * time.Minute
	keyTTL   = 15 * time.Minute
	countTTL = 12 * time.Minute
)

// world is Headcount on a Redis whose clock the test can step.
type world struct {
	t     *testing.T
	rdb   redis.UniversalClient
	k     keys.Keys
	rec   *recorder.Recorder
	agg   *aggregator.Aggregator // of the worker that leads
	other *aggregator.Aggregator // of the one that stands by, and remembers when it led
	look  *lookup.Lookup
	stats *statistics
	clock clock
	kind  int // 0: the first, whose passes keep who is on the site, of any kind
}

// clock is Redis's.
type clock interface {
	now() int64
	step(w *world, m *model, seconds int64) // once for each kind
}

func newWorld(t *testing.T, addr string, c clock) *world {
	t.Helper()
	rdb, err := redisclient.New(redisclient.Options{Mode: redisclient.Single, Addrs: []string{addr}, Timeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	w := &world{t: t, rdb: rdb, clock: c}
	w.start()
	return w
}

// start starts what serves one kind, under a prefix of its own.
func (w *world) start() {
	w.k = keys.New(redistest.Prefix(w.t))
	w.stats = newStatistics(w.t, w.rdb, w.k, w.stats)
	w.rec = recorder.New(w.rdb, recorder.Options{
		Keys: w.k, KeyTTL: keyTTL, CountTTL: countTTL, Timeout: 10 * time.Second, Window: window, Statistics: w.stats.recorded(),
	})
	w.newWorkers()
	look, err := lookup.New(w.rdb, lookup.Options{Keys: w.k, CountTTL: countTTL, Counter: w.agg, Timeout: 10 * time.Second})
	must(w.t, err)
	w.look = look
	w.t.Cleanup(look.Close)
}

// another serves another kind beside w.
func (w *world) another(m *model) (*world, *model) {
	o := &world{t: w.t, rdb: w.rdb, clock: w.clock, stats: w.stats, kind: w.kind + 1}
	o.start()
	other := newModel(m.window)
	other.site = m.site
	return o, other
}

// newWorker is one that remembers nothing.
func (w *world) newWorker() *aggregator.Aggregator {
	return aggregator.New(w.rdb, aggregator.Options{
		Keys: w.k, Window: window, KeyTTL: keyTTL, CountTTL: countTTL, Observe: w.stats.newWorker(),
	})
}

// newWorkers forgets whatever the workers remembered.
func (w *world) newWorkers() { w.agg, w.other = w.newWorker(), w.newWorker() }

// moveLease lets the other worker lead.
func (w *world) moveLease() { w.agg, w.other = w.other, w.agg }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Redis's own clock cannot be stepped, but the stored times can, which is the
// same to all who compare them. It is not to a worker that remembers what they
// were, so each step takes new ones.
type realClock struct{ rdb redis.UniversalClient }

func (c *realClock) now() int64 {
	now, err := c.rdb.Time(context.Background()).Result()
	if err != nil {
		return 0
	}
	return now.Unix()
}

func (c *realClock) step(w *world, m *model, seconds int64) {
	w.newWorkers()
	for video, viewers := range m.videos {
		for viewer, value := range viewers {
			if at, ok := number(value); ok {
				viewers[viewer] = strconv.FormatInt(int64(at)-seconds, 10)
				must(w.t, w.rdb.HSet(w.t.Context(), w.k.Online(video), viewer, viewers[viewer]).Err())
			}
		}
	}
	if w.kind > 0 {
		return
	}
	for viewer, at := range m.site {
		m.site[viewer] = at - seconds
		must(w.t, w.rdb.ZAddXX(w.t.Context(), w.k.OnlineUsers(), redis.Z{Score: float64(at - seconds), Member: viewer}).Err())
	}
}

// virtualClock is that of an embedded Redis.
type virtualClock struct {
	redis *miniredis.Miniredis
	at    int64
}

func (c *virtualClock) now() int64 { return c.at }

func (c *virtualClock) step(w *world, _ *model, seconds int64) {
	if w.kind > 0 {
		return
	}
	c.at += seconds
	c.redis.SetTime(time.Unix(c.at, 0))
	if seconds > 0 {
		c.redis.FastForward(time.Duration(seconds) * time.Second)
	}
}

func TestModelInVirtualTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := miniredis.RunT(t)
			c := &virtualClock{redis: m, at: 1_700_000_000}
			c.redis.SetTime(time.Unix(c.at, 0))
			run(t, newWorld(t, m.Addr(), c), seed, 1500, func(r *rand.Rand) int64 {
				if r.IntN(50) == 0 {
					return -r.Int64N(300) // a clock set back
				}
				return r.Int64N(140) // a pass is at most as late as a TTL's margin
			})
		})
	}
}

func TestModelOnRedis(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t)
			w := newWorld(t, server.Addr(), nil)
			w.clock = &realClock{w.rdb}
			// Steps and the ages of foreign values never add up to within 10
			// seconds of the window, so the seconds that pass do not matter.
			m := run(t, w, seed, 600, func(r *rand.Rand) int64 { return 64 * (1 + r.Int64N(3)) })
			w.compareUniques(m) // the embedded Redis adds hours up instead of uniting them
		})
	}
}

var videos = []string{"10001", "a*", "abc", "日本語", "count", "rare", popular}

// run does random things to the world and to the model, and compares the two
// after every pass.
func run(t *testing.T, w *world, seed uint64, operations int, nextStep func(*rand.Rand) int64) *model {
	r := rand.New(rand.NewPCG(seed, 1))
	m := newModel(int64(window / time.Second))
	first, of := w, m
	second, ofSecond := w.another(m)
	recorded := make(map[string]int64) // video and viewer → what their last play, of any kind, returned
	for i := 0; i < operations && !t.Failed(); i++ {
		video := videos[r.IntN(len(videos))]
		viewer := fmt.Sprint("u", r.IntN(40))
		if w, m = first, of; r.IntN(4) == 0 {
			w, m = second, ofSecond
		}
		switch n := r.IntN(100); {
		case n < 45:
			w.play(m, recorded, video, viewer)
		case n < 65:
			w.leave(m, video, viewer, []int64{0, recorded[video+viewer], recorded[video+viewer] - 60}[r.IntN(3)])
		case n < 78:
			w.foreignWrite(m, r, video, viewer)
		case n < 80:
			w.disturb(m, r, video)
		case n < 81:
			must(t, w.rdb.ScriptFlush(t.Context()).Err())
		case n < 82:
			w.agg = w.newWorker()
		case n < 84:
			w.moveLease()
		case n < 86:
			w.crowd(m, r, recorded)
		case n < 88:
			w.lookUp(m, video)
		case n < 89:
			w.heartbeat(m, viewer)
		case n < 90:
			w.leaveSite(m, viewer, recorded["site"+viewer])
		case n < 95:
			seconds := nextStep(r)
			first.clock.step(first, of, seconds)
			second.clock.step(second, ofSecond, seconds)
			first.passAndCompare(of)
			second.passAndCompare(ofSecond)
			first.compareStatistics(of)
			second.compareStatistics(ofSecond)
		default:
			w.passAndCompare(m)
			w.compareStatistics(m)
		}
	}
	if t.Failed() {
		t.Logf("repeat with seed %d", seed)
	}
	return of
}

func (w *world) play(m *model, recorded map[string]int64, video, viewer string) {
	at, err := w.rec.Play(w.t.Context(), video, viewer)
	must(w.t, err)
	if now := w.clock.now(); at > now || at < now-5 {
		w.t.Errorf("play recorded at %d, now is %d", at, now)
	}
	first := len(m.videos[video]) == 0
	m.play(at, video, viewer)
	m.write(video, viewer, strconv.FormatInt(at, 10))
	recorded[video+viewer], recorded["site"+viewer] = at, at
	if first {
		w.wantCount(video, 1) // at once, not after the next pass
	}
}

// popular is a video of so many viewers that its hash is read in pages, and
// seldom: between two readings, only those who may be stale are looked at.
const popular = "popular"

// crowd has many watch the popular video at once.
func (w *world) crowd(m *model, r *rand.Rand, recorded map[string]int64) {
	var same, viewers []string
	for _, i := range r.Perm(400)[:150] {
		same, viewers = append(same, popular), append(viewers, fmt.Sprint("u", i))
	}
	at, errs := w.rec.PlayAll(w.t.Context(), same, viewers)
	must(w.t, errors.Join(errs...))
	for _, viewer := range viewers {
		m.play(at, popular, viewer)
		m.write(popular, viewer, strconv.FormatInt(at, 10))
		recorded[popular+viewer] = at
	}
}

func (w *world) leave(m *model, video, viewer string, recordedAt int64) {
	must(w.t, w.rec.Leave(w.t.Context(), video, viewer, max(recordedAt, 0)))
	before := len(m.videos[video])
	m.leave(video, viewer, max(recordedAt, 0))
	if before > 0 && len(m.videos[video]) == 0 {
		w.wantCount(video, 0)
	}
}

// foreignWrite is a bare HSET by a program with a clock, and habits, of its own.
func (w *world) foreignWrite(m *model, r *rand.Rand, video, viewer string) {
	now := w.clock.now()
	at := func(seconds int64) string { return strconv.FormatInt(seconds, 10) }
	value := []string{
		at(now), at(now - 120), at(now + 120), at(now - 300), at(now) + ".5",
		at(now - 3600), at(now + 86400), at(now) + "000", "text", "0", "",
	}[r.IntN(11)]
	must(w.t, w.rdb.HSet(w.t.Context(), w.k.Online(video), viewer, value).Err())
	m.writeAt(now, video, viewer, value)
}

// disturb does what nobody should: another program, or a person, changes keys
// behind the worker's back.
func (w *world) disturb(m *model, r *rand.Rand, video string) {
	ctx := w.t.Context()
	switch r.IntN(5) {
	case 0:
		must(w.t, w.rdb.Del(ctx, w.k.Online(video)).Err())
		delete(m.videos, video)
		delete(m.late, video)
	case 1:
		must(w.t, w.rdb.Del(ctx, w.k.Count(video)).Err())
	case 2:
		must(w.t, w.rdb.Set(ctx, w.k.Count(video), r.IntN(50), 0).Err())
	case 3:
		must(w.t, w.rdb.Persist(ctx, w.k.Online(video)).Err())
	case 4:
		from := videos[r.IntN(len(videos))]
		if from != video && len(m.videos[from]) > 0 {
			must(w.t, w.rdb.Rename(ctx, w.k.Online(from), w.k.Online(video)).Err())
			m.rename(w.clock.now(), from, video)
		}
	}
}

// lookUp only ever computes when there is no count key, and is exact then.
func (w *world) lookUp(m *model, video string) {
	ctx := w.t.Context()
	had := w.rdb.Exists(ctx, w.k.Count(video)).Val() == 1
	viewers, _, err := w.look.Viewers(ctx, video)
	must(w.t, err)
	if had {
		if want, err := w.rdb.Get(ctx, w.k.Count(video)).Int64(); err != nil || viewers != want {
			w.t.Errorf("lookup of %q: got %d, want the published %d (%v)", video, viewers, want, err)
		}
		return
	}
	m.pass(video, w.clock.now(), nil) // counting one video reads it, and evicts
	if want := len(m.videos[video]); viewers != int64(want) {
		w.t.Errorf("computed lookup of %q: got %d, want %d", video, viewers, want)
	}
}

func (w *world) passAndCompare(m *model) {
	now := w.clock.now()
	sum, err := w.agg.Pass(w.t.Context())
	must(w.t, err)
	total := 0
	for _, video := range slices.Sorted(maps.Keys(m.videos)) {
		got, err := w.rdb.HGetAll(w.t.Context(), w.k.Online(video)).Result()
		must(w.t, err)
		m.pass(video, now, got)
		w.wantCount(video, len(m.videos[video]))
		total += len(m.videos[video])
		if diff := cmp.Diff(m.videos[video], got); diff != "" {
			w.t.Errorf("hash of %q (-model +Redis):\n%s", video, diff)
		}
		w.wantTTLs(video)
	}
	if sum.Viewers != int64(total) {
		w.t.Errorf("viewers in the summary: got %d, want %d", sum.Viewers, total)
	}
	m.passed(now, w.kind == 0)
}

// wantCount asserts what a program that GETs the count key takes the number for.
func (w *world) wantCount(video string, want int) {
	w.t.Helper()
	got, err := w.rdb.Get(w.t.Context(), w.k.Count(video)).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.t.Fatal(err)
	}
	if got != want {
		w.t.Errorf("count of %q: got %d, want %d", video, got, want)
	}
}

func (w *world) wantTTLs(video string) {
	w.t.Helper()
	for _, key := range []string{w.k.Online(video), w.k.Count(video)} {
		if ttl := w.rdb.TTL(w.t.Context(), key).Val(); ttl == -1 {
			w.t.Errorf("%s has no TTL", key)
		}
	}
}
