package chaos

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// crowd is viewers of some videos: watching ones, who beat when told to, and gone ones, who played once.
type crowd struct {
	*site
	client         *client
	watching, gone []viewing
}

const (
	crowdVideos  = 5
	watchersEach = 40
	goneEach     = 10
	tolerated    = 2 * time.Minute // how far a clock may be off
)

func (s *site) newCrowd(t testing.TB) *crowd {
	t.Helper()
	c := &crowd{site: s, client: newClient(s.ledger)}
	t.Cleanup(c.client.close)
	for video := range crowdVideos {
		for viewer := range watchersEach {
			c.watching = append(c.watching, viewing{strconv.Itoa(video), fmt.Sprintf("watching-%d", viewer)})
		}
		for viewer := range goneEach {
			c.gone = append(c.gone, viewing{strconv.Itoa(video), fmt.Sprintf("gone-%d", viewer)})
		}
	}
	c.play(t, c.gone)
	c.play(t, c.watching)
	return c
}

// play has viewers play until that is acknowledged.
func (c *crowd) play(t testing.TB, viewings []viewing) {
	t.Helper()
	eventually(t, "a play is acknowledged", func() bool {
		_, a := c.client.playAll(t.Context(), c.balancer.pick(0), viewings)
		return a.outcome() == acknowledged
	})
}

// wantCounts waits for a pass that begins after now, and checks that each video's count is from least to most.
func (c *crowd) wantCounts(t testing.TB, when string, least, most int) {
	t.Helper()
	c.awaitOtherPasses(t)
	for video := range crowdVideos {
		got, err := c.redis.Get(t.Context(), c.keys.Count(strconv.Itoa(video))).Int()
		if errors.Is(err, redis.Nil) {
			err = nil // a step as long as its TTL has taken it: 0
		}
		if err != nil || got < least || got > most {
			t.Errorf("%s: count of video %d = %d, %v, want %d to %d", when, video, got, err, least, most)
		}
	}
}

// awaitOtherPasses is awaitPass where last_pass may have expired or be another server's, so that its number says nothing.
func (c *crowd) awaitOtherPasses(t testing.TB) {
	t.Helper()
	for range 2 { // the first may have begun before now
		before := c.lastPass(t.Context())["passes"]
		eventually(t, "a complete pass", func() bool {
			last := c.lastPass(t.Context())
			return last["passes"] != "" && last["passes"] != before && last["errors"] == "0"
		})
	}
}

// now is Redis's time.
func (c *crowd) now(t testing.TB) time.Time {
	t.Helper()
	now, err := c.redis.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// sinceBeat is how long ago the last beat of those who did not beat just now was when the clock steps: with the step, less
// than the window, if that is possible. A busy machine adds some seconds.
func (s *scenario) sinceBeat(step time.Duration) time.Duration {
	most := window - min(step.Abs(), window/2) - 30*time.Second
	return time.Duration(s.rand.Int64N(int64(most/time.Second))) * time.Second
}

// wantKept has the judge look after a pass, when the clock has stepped since before. Who was within the window then and
// is now is there, and nobody else. What the judge says of times, TTLs and statistics takes a clock that only goes on.
func (c *crowd) wantKept(t testing.TB, when string, before time.Time) (lostPlays int) {
	t.Helper()
	c.ledger.unsettle(before.Add(-window), c.now(t).Add(tolerated))
	judged := []kind{lost, ghost, stayed, stale, wrongCount, strange, unfinished}
	var found []difference
	for until := time.Now().Add(3 * time.Second); ; {
		all, err := c.judge.look(t.Context(), c.redis, c.ledger)
		if err != nil {
			t.Fatal(err)
		}
		found = slices.DeleteFunc(all, func(d difference) bool { return !slices.Contains(judged, d.kind) })
		if len(found) == 0 || time.Now().After(until) {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	for _, d := range found[:min(len(found), 10)] {
		t.Errorf("%s: %s", when, d)
	}
	return count(found, lost)
}

// beat has everybody who watches play by the clock as it is now. What was recorded at a time that is yet to come says
// nothing any more.
func (c *crowd) beat(t testing.TB) {
	t.Helper()
	now := c.now(t)
	c.ledger.unsettle(now.Add(-window), now)
	c.play(t, c.watching)
}

// unsettle takes back what was acknowledged with a time before or after these: it may still be there, or not. A play whose
// time is yet to come took the place of the viewer's earlier ones, so these say nothing either.
func (l *ledger) unsettle(from, to time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest = min(l.newest, to.Unix())
	for _, entries := range l.entries {
		yetToCome := slices.ContainsFunc(entries, func(e *entry) bool { return e.outcome == acknowledged && e.recordedAt > to.Unix() })
		for _, e := range entries {
			if e.outcome == acknowledged && (yetToCome || e.recordedAt < from.Unix()) {
				e.outcome = unknown
			}
		}
	}
}

// beatHalf has every other one of those who watch play: of the rest, the last beat is a while ago.
func (c *crowd) beatHalf(t testing.TB) {
	t.Helper()
	var half []viewing
	for i := 0; i < len(c.watching); i += 2 {
		half = append(half, c.watching[i])
	}
	c.play(t, half)
}

// wantRightAgain has everybody beat, and checks that all of them are counted then.
func (c *crowd) wantRightAgain(t testing.TB, when string, f *figures) {
	t.Helper()
	began := time.Now()
	before := c.now(t)
	c.beat(t)
	c.wantCounts(t, when, watchersEach, watchersEach+goneEach)
	f.recovered(time.Since(began))
	f.lost += c.wantKept(t, when, before)
}

// beatAndPasses is what a beat of everybody and two passes may take.
const beatAndPasses = 2 * time.Second

// TestClockSteps steps Redis's clock between beats. By up to what is tolerated, nobody who watches is dropped; by more, who
// watches is back with the next beat. Nobody is counted who never was there, and whoever is gone is dropped at last.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	s := begin(t)
	clock := redistest.NewClock(t)
	server := clock.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	worker := site.startWorker(t)
	recorder := site.addRecorder(t)
	c := site.newCrowd(t)
	c.wantCounts(t, "before", watchersEach+goneEach, watchersEach+goneEach)

	steps := []time.Duration{time.Minute, -2 * time.Minute, 90 * time.Second, -11 * time.Minute, 13 * time.Minute, -time.Hour}
	var f figures
	for _, step := range steps[:s.times(4, len(steps))] {
		since := s.sinceBeat(step)
		when := fmt.Sprintf("after a step by %s, %s after half of the last beats", step, since)
		clock.Step(t, since)
		c.awaitOtherPasses(t)
		c.beatHalf(t)
		before := c.now(t)
		clock.Step(t, step)
		f.faults++
		least := 0
		if step.Abs() <= tolerated {
			least = watchersEach
		}
		c.wantCounts(t, when, least, watchersEach+goneEach)
		f.lost += c.wantKept(t, when, before)
		c.wantRightAgain(t, when+" and the next one", &f)
	}
	clock.Step(t, window+2*time.Minute+time.Second)
	c.beat(t)
	c.wantCounts(t, "a window later", watchersEach, watchersEach)
	f.lost += c.wantKept(t, "a window later", c.now(t))
	s.hold(&f, beatAndPasses)
	c.wantUnnoticed(t, worker, recorder)
	f.report(t, site.ledger)
}

// wantUnnoticed checks what an operator sees of a clock that stepped: evictions of those who were stale or implausible by it, and
// nothing else.
func (c *crowd) wantUnnoticed(t testing.TB, worker, recorder *programtest.Program) {
	t.Helper()
	wantCounted(t, worker, viewersEvicted, crowdVideos*goneEach-1)
	wantMetric(t, worker, partialPasses, 0)
	wantMetric(t, recorder, failedPlays, 0)
	for _, p := range []*programtest.Program{worker, recorder} {
		wantReady(t, p, "redis", "ok")
	}
	if logged(recorder, notRecorded) {
		t.Errorf("the recorder's log tells of an outage:\n%s", recorder.Output())
	}
	wantNoPanic(t, worker)
}

// TestReplicaWithAnotherClockPromoted promotes a replica whose clock is a minute off, between beats. Nobody who watches is
// dropped, and whoever is gone is at most that much longer or shorter there.
func TestReplicaWithAnotherClockPromoted(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Minute, time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			s := begin(t)
			masters, clock := redistest.NewClock(t), redistest.NewClock(t)
			master := masters.Start(t, "--repl-diskless-sync-delay", "0")
			_, port := splitAddr(t, master.Addr())
			clock.Step(t, off)
			replica := clock.Start(t, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", port)
			road := s.newProxy(master.Addr(), nil)
			site := s.newSite(master.Client(), road.addr())
			worker := site.startWorker(t)
			recorder := site.addRecorder(t)
			c := site.newCrowd(t)
			since := s.sinceBeat(off)
			for _, both := range []*redistest.Clock{masters, clock} {
				both.Step(t, since)
			}
			c.beatHalf(t)
			c.wantCounts(t, "before", watchersEach+goneEach, watchersEach+goneEach)
			eventually(t, "the replica has it all", func() bool { return c.replicated(t, master, replica) })

			before := c.now(t)
			s.replicaOf(replica, "NO", "ONE")
			site.redis = replica.Client()
			road.retarget(replica.Addr())
			var f figures
			f.faults++
			when := fmt.Sprintf("promoted, %s after half of the last beats", since)
			c.wantCounts(t, when, watchersEach+goneEach, watchersEach+goneEach)
			f.lost += c.wantKept(t, when, before)
			c.wantRightAgain(t, when+" and the next one", &f)
			clock.Step(t, window-off.Abs()-10*time.Second)
			c.beat(t)
			c.wantCounts(t, "nearly a window later", watchersEach, watchersEach+goneEach)
			f.lost += c.wantKept(t, "nearly a window later", c.now(t))
			clock.Step(t, 2*off.Abs()+11*time.Second)
			c.beat(t)
			c.wantCounts(t, "a window and a minute later", watchersEach, watchersEach)
			f.lost += c.wantKept(t, "a window and a minute later", c.now(t))
			s.hold(&f, beatAndPasses)
			wantCounted(t, worker, viewersEvicted, 0)
			wantReady(t, recorder, "redis", "ok")
			wantNoPanic(t, worker)
			f.report(t, site.ledger)
		})
	}
}

// replicated reports whether the replica has every play of the crowd: passes go on, so that it is never quite level.
func (c *crowd) replicated(t testing.TB, master, replica *redistest.Server) bool {
	t.Helper()
	for video := range crowdVideos {
		key := c.keys.Online(strconv.Itoa(video))
		if replica.Client().HLen(t.Context(), key).Val() != master.Client().HLen(t.Context(), key).Val() {
			return false
		}
	}
	return true
}

func splitAddr(t testing.TB, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}
