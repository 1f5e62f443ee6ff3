package chaos

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

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

// TestClockSteps steps Redis's clock. By up to what is tolerated, nobody who watches is dropped; by more, who watches is
// back with the next beat. Nobody is counted who never was there, and whoever is gone is dropped at last.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	s := begin(t)
	clock := redistest.NewClock(t)
	server := clock.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	worker := site.startWorker(t)
	site.addRecorder(t)
	c := site.newCrowd(t)
	c.wantCounts(t, "before", watchersEach+goneEach, watchersEach+goneEach)

	steps := []time.Duration{time.Minute, -2 * time.Minute, 90 * time.Second, -11 * time.Minute, 13 * time.Minute, -time.Hour}
	var f figures
	for _, step := range steps[:s.times(4, len(steps))] {
		when := fmt.Sprintf("after a step by %s", step)
		clock.Step(t, step)
		f.faults++
		least := 0
		if step.Abs() <= tolerated {
			least = watchersEach
		}
		c.wantCounts(t, when, least, watchersEach+goneEach)
		stepped := time.Now()
		c.play(t, c.watching)
		c.wantCounts(t, when+" and a beat", watchersEach, watchersEach+goneEach)
		f.recovered(time.Since(stepped))
	}
	clock.Step(t, window+2*time.Minute+time.Second)
	c.play(t, c.watching)
	c.wantCounts(t, "a window later", watchersEach, watchersEach)
	if logged(worker, "a pass panicked") {
		t.Error("a pass panicked")
	}
	f.report(t, site.ledger)
}

// TestReplicaWithAnotherClockPromoted promotes a replica whose clock is a minute off. Nobody who watches is dropped, and
// whoever is gone is at most that much longer or shorter there.
func TestReplicaWithAnotherClockPromoted(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Minute, time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			s := begin(t)
			clock := redistest.NewClock(t)
			master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
			_, port := splitAddr(t, master.Addr())
			clock.Step(t, off)
			replica := clock.Start(t, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", port)
			road := s.newProxy(master.Addr(), nil)
			site := s.newSite(master.Client(), road.addr())
			site.startWorker(t)
			site.addRecorder(t)
			c := site.newCrowd(t)
			c.wantCounts(t, "before", watchersEach+goneEach, watchersEach+goneEach)
			eventually(t, "the replica has it all", func() bool { return c.replicated(t, master, replica) })

			s.replicaOf(replica, "NO", "ONE")
			site.redis = replica.Client()
			road.retarget(replica.Addr())
			promoted := time.Now()
			var f figures
			f.faults++
			c.wantCounts(t, "promoted", watchersEach+goneEach, watchersEach+goneEach)
			c.play(t, c.watching)
			c.wantCounts(t, "promoted, and a beat", watchersEach+goneEach, watchersEach+goneEach)
			f.recovered(time.Since(promoted))
			clock.Step(t, window-off.Abs()-10*time.Second)
			c.play(t, c.watching)
			c.wantCounts(t, "nearly a window later", watchersEach, watchersEach+goneEach)
			clock.Step(t, 2*off.Abs()+11*time.Second)
			c.play(t, c.watching)
			c.wantCounts(t, "a window and a minute later", watchersEach, watchersEach)
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
