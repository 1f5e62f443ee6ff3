package chaos

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// lag is how long before a master's death an acknowledged play may be lost with it: what it has not passed on to its
// replica yet. It takes milliseconds, on a busy machine more.
const lag = 2 * time.Second

var failoverLoad = loadOptions{players: 20, videos: 40, pause: 20 * time.Millisecond}

// TestSentinelFailover kills the master under load. What was acknowledged more than a moment before is not lost.
func TestSentinelFailover(t *testing.T) {
	s := begin(t)
	var f figures
	total := newLedger()
	for range s.times(1, 4) { // each with servers of its own: a dead master has no replica to fail over to
		set := redistest.StartSentinel(t)
		reader := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: set.MasterName, SentinelAddrs: set.Addrs(), DisableIdentity: true, ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { _ = reader.Close() })
		site := s.newSite(reader, strings.Join(set.Addrs(), ","), "HEADCOUNT_REDIS_MODE=sentinel", "HEADCOUNT_REDIS_MASTER_NAME="+set.MasterName)
		replica := set.Replica().Addr()
		f.failover(t, site, set.Master(), "10001", func() bool { return named(t, set, replica) })
		acknowledged, _ := site.ledger.totals()
		total.acknowledged += acknowledged
	}
	s.hold(&f, time.Second)
	f.report(t, total)
}

// TestClusterMasterLost kills one of three masters under load; its replica takes over.
func TestClusterMasterLost(t *testing.T) {
	s := begin(t)
	var f figures
	total := newLedger()
	for range s.times(1, 4) {
		c := redistest.StartCluster(t, 3, 1, "--cluster-require-full-coverage", "no")
		site := s.newSite(c.Client(), strings.Join(c.Addrs(), ","), "HEADCOUNT_REDIS_MODE=cluster")
		master := c.Masters()[s.rand.IntN(3)]
		replica := replicaOfMaster(t, master)
		video := 10001
		for c.Owner(t, c.Slot(t, site.keys.Online(strconv.Itoa(video)))) != master {
			video++
		}
		f.failover(t, site, master, strconv.Itoa(video), func() bool { return strings.Contains(replica.Info(t.Context(), "replication").Val(), "role:master") })
		acknowledged, _ := site.ledger.totals()
		total.acknowledged += acknowledged
	}
	s.hold(&f, 3*time.Second) // a write that was under way may take 2 s, and the next waits for it
	f.report(t, total)
}

// failures are the plays and leaves of a load that did not succeed.
type failures struct {
	mu   sync.Mutex
	n    int
	last time.Time // when the last of them ended
}

func (f *failures) note(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	f.last = a.sent.Add(a.took)
}

func (f *failures) totals() (n int, last time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n, f.last
}

// awaitEnd waits until plays have begun to fail, and have succeeded for a second since.
func (f *failures) awaitEnd(t testing.TB, l *load) {
	t.Helper()
	eventually(t, "plays fail, and none does any more", func() bool {
		n, last := f.totals()
		return n > 0 && time.Since(last) > time.Second && l.acknowledgedSince(last)
	})
}

// failover kills a master of the site's Redis under load and waits for its replica to serve in its place, which served tells.
// video is one of the master's. It counts what was lost, and fails the test if that is more than replication explains.
func (f *figures) failover(t *testing.T, site *site, master *redistest.Server, video string, served func() bool) {
	t.Helper()
	worker := site.startWorker(t)
	recorder := site.addRecorder(t)
	site.addRecorder(t)
	var failed failures
	load := site.startLoad(t, failoverLoad, failed.note)
	site.awaitPass(t)
	eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })

	killed := time.Now()
	master.Kill(t)
	f.faults++
	if _, ok := site.redis.(*redis.ClusterClient); !ok { // a cluster's other masters answer
		wantUnreachable(t, recorder)
	}
	eventually(t, "the replica serves", served)
	serves := time.Now()
	probe := newClient(site.ledger)
	defer probe.close()
	eventually(t, "a play of the master's video is recorded", func() bool {
		at, _ := probe.play(t.Context(), recorder.URL(t, "public"), viewing{video, "probe"})
		return at > 0
	})
	f.recovered(time.Since(serves))
	t.Logf("the replica serves %s after the master's death, plays are recorded %s later", serves.Sub(killed), time.Since(serves))
	failed.awaitEnd(t, load)
	load.stop()
	eventually(t, "the suite reaches the new master", func() bool {
		_, err := takeSnapshot(t.Context(), site.redis, site.judge.prefix+":*")
		return err == nil
	})
	site.awaitPass(t)
	found := site.differences(t, 3*time.Second)
	lost := count(found, lost) + count(found, stayed)
	f.lost += lost
	doubted := site.ledger.doubt(killed.Add(-lag), killed.Add(lag))
	t.Logf("%d lost, of %d acknowledged within %s of the master's death", lost, doubted, lag)
	site.wantSound(t)
	wantNotRecorded(t, recorder, "")
	wantDisturbed(t, worker, 0)
	for _, p := range []*programtest.Program{worker, recorder} {
		wantReady(t, p, "redis", "ok")
	}
	wantNoPanic(t, worker)
}

// named reports whether every sentinel tells clients of that master.
func named(t *testing.T, set *redistest.Sentinel, master string) bool {
	t.Helper()
	for _, addr := range set.Addrs() {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr, DisableIdentity: true})
		got, err := sentinel.GetMasterAddrByName(t.Context(), set.MasterName).Result()
		_ = sentinel.Close()
		if err != nil || strings.Join(got, ":") != master {
			return false
		}
	}
	return true
}

// replicaOfMaster reaches the first replica of a master.
func replicaOfMaster(t *testing.T, master *redistest.Server) *redis.Client {
	t.Helper()
	var port string
	eventually(t, "the master has a replica", func() bool {
		_, after, _ := strings.Cut(master.Client().Info(t.Context(), "replication").Val(), "slave0:ip=127.0.0.1,port=")
		port, _, _ = strings.Cut(after, ",")
		return port != ""
	})
	replica := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, DisableIdentity: true, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = replica.Close() })
	return replica
}

// TestReadOnlyStorm makes a replica of the master, again and again: it answers READONLY. It keeps what it has, so nothing
// is lost.
func TestReadOnlyStorm(t *testing.T) {
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	worker := site.startWorker(t)
	recorder := site.addRecorder(t)
	var failed failures
	load := site.startLoad(t, failoverLoad, failed.note)
	var f figures
	for range s.times(3, 30) {
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })
		before, _ := failed.totals()
		disturbances := disturbed(t, worker)
		s.replicaOf(server, "127.0.0.1", "1") // where no server is
		f.faults++
		eventually(t, "plays fail", func() bool { n, _ := failed.totals(); return n > before })
		wantDisturbed(t, worker, disturbances)
		s.replicaOf(server, "NO", "ONE")
		back := time.Now()
		eventually(t, "plays are recorded again", func() bool { return load.acknowledgedSince(back) })
		f.recovered(time.Since(back))
	}
	load.stop()
	f.lost = site.wantSound(t)
	s.hold(&f, time.Second)
	wantNotRecorded(t, recorder, "READONLY")
	wantNoPanic(t, worker)
	f.report(t, site.ledger)
}

func (s *scenario) replicaOf(server *redistest.Server, host, port string) {
	s.Helper()
	if err := server.Client().Do(s.Context(), "REPLICAOF", host, port).Err(); err != nil {
		s.Fatal(err)
	}
}

// TestMovedStorm moves slots to and fro under load: clients are redirected by ASK and MOVED, and nothing is
// lost.
func TestMovedStorm(t *testing.T) {
	s := begin(t)
	c := redistest.StartCluster(t, 3, 0)
	site := s.newSite(c.Client(), strings.Join(c.Addrs(), ","), "HEADCOUNT_REDIS_MODE=cluster")
	worker := site.startWorker(t)
	recorder := site.addRecorder(t)
	var failed failures
	load := site.startLoad(t, failoverLoad, failed.note)
	var f figures
	for range s.times(10, 100) {
		video := strconv.Itoa(10001 + s.rand.IntN(5))
		key := site.keys.Online(video)
		if s.rand.IntN(3) == 0 {
			key = site.keys.Count(video)
		}
		slot := c.Slot(t, key)
		move := c.Migrate(t, slot, c.Other(c.Owner(t, slot)))
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })
		move.MoveKeys(t)
		move.Finish(t)
		f.faults++
		moved := time.Now()
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(moved) })
		f.recovered(time.Since(moved))
	}
	load.stop()
	f.lost = site.wantSound(t)
	if n, _ := failed.totals(); n > 0 {
		t.Errorf("%d plays and leaves were refused while slots moved, want none; answers by status: %v", n, load.totals().codes)
	}
	s.hold(&f, time.Second)
	for _, p := range []*programtest.Program{worker, recorder} {
		wantReady(t, p, "redis", "ok")
	}
	wantMetric(t, recorder, failedPlays, 0)
	if logged(recorder, notRecorded) {
		t.Errorf("the recorder's log tells of an outage while slots moved:\n%s", recorder.Output())
	}
	wantNoPanic(t, worker)
	f.report(t, site.ledger)
}
