package chaos

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

var soak = flag.Duration("soak", 6*time.Second, "how long the soak lasts; make soak takes 15 minutes")

// level is what a soak watches: it must not rise for ever.
type level struct {
	name  string
	slack float64 // by which it may rise: how many are at work at once is up to chance
	read  func() float64
}

const soakVideos = 200

// playAllVideos has each video watched once: some of the keys of a video are kept.
func (s *site) playAllVideos(t *testing.T) {
	t.Helper()
	c := newClient(s.ledger)
	defer c.close()
	var all []viewing
	for n := range soakVideos {
		all = append(all, viewing{strconv.Itoa(10001 + n), "first"})
	}
	if _, a := c.playAll(t.Context(), s.balancer.pick(0), all); a.outcome() != acknowledged {
		t.Fatalf("the first plays: %s", a)
	}
	s.awaitPass(t)
}

// leastSamples are taken however slow the machine is.
const leastSamples = 30

// TestSoak lets load, passes and restarts of workers go on, and compares the last third with the second: nothing that
// programs or Redis hold on to may have grown. The middle one of many samples is a level: what only comes and goes, as
// connections do, is not in it. The first third is for everything to reach its level.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newShortSite(server, "HEADCOUNT_LEASE_TTL=2s")
	recorder := site.addRecorder(t)
	first := site.startWorker(t) // leads
	steady := site.startWorker(t)
	var failed failures
	load := site.startLoad(t, loadOptions{players: 20, videos: soakVideos, pause: 40 * time.Millisecond}, failed.note)
	site.playAllVideos(t)
	site.end(t, first, false)
	wantMetric(t, steady, "headcount_lease_held", 1) // from now on
	restarting := site.startWorker(t)
	site.awaitPass(t)

	watched := levels(t, recorder, steady, server.Client())
	samples := make([][]float64, len(watched))
	var f figures
	began, restarted := time.Now(), time.Now()
	tick := time.NewTicker(max(*soak/300, 100*time.Millisecond))
	defer tick.Stop()
	for time.Since(began) < *soak || len(samples[0]) < leastSamples {
		<-tick.C
		for i, l := range watched {
			samples[i] = append(samples[i], l.read())
		}
		if time.Since(restarted) > max(*soak/30, 2*time.Second) {
			restarted = time.Now()
			restarting.URL(t, "admin") // it runs, and does not die of a SIGTERM that comes before it listens to that
			site.end(t, restarting, f.faults%2 == 0)
			restarting = site.startWorker(t)
			f.faults++
		}
	}
	load.stop()
	for i, l := range watched {
		wantLevel(t, l, samples[i])
	}
	n, _ := failed.totals()
	t.Logf("%d plays and leaves failed", n) // a busy machine may let one wait too long
	f.lost = site.wantSound(t)
	f.report(t, site.ledger)
}

// end ends a worker: it is told to stop, or killed.
func (s *site) end(t testing.TB, worker *programtest.Program, kill bool) {
	t.Helper()
	if kill {
		worker.Kill(t)
	} else if err := worker.Stop(t); err != nil {
		t.Errorf("a worker ended with: %v", err)
	}
}

func levels(t *testing.T, recorder, worker *programtest.Program, rdb *redis.Client) []level {
	t.Helper()
	of := func(p *programtest.Program, name string) func() float64 {
		admin := p.URL(t, "admin")
		return func() float64 { return programtest.Metric(t, admin, name) }
	}
	ofRedis := func(section, name string) func() float64 {
		return func() float64 { return float64(info(t.Context(), rdb, section, name)) }
	}
	const kb = 1 << 10
	heap, keys := 256.0*kb, 20.0
	if *soak < time.Minute { // it is over before all is as it stays
		heap, keys = 8*heap, 8*keys
	}
	return []level{
		{"goroutines of the recorder", 4, of(recorder, "go_goroutines")},
		{"goroutines of a worker", 4, of(worker, "go_goroutines")},
		{"file descriptors of the recorder", 4, of(recorder, "process_open_fds")},
		{"file descriptors of a worker", 4, of(worker, "process_open_fds")},
		{"memory in use of the recorder", heap, liveHeap(t, recorder)},
		{"memory in use of a worker", heap, liveHeap(t, worker)},
		{"connections to Redis", 4, ofRedis("clients", "connected_clients")},
		{"memory of Redis beyond its keys", 64 * kb, func() float64 { return memoryBeyondKeys(t, rdb) }},
		{"keys in Redis", keys, func() float64 { return float64(len(lastingKeys(t, rdb))) }},
	}
}

// liveHeap reads what is left of a program's heap after a garbage collection, in bytes.
func liveHeap(t *testing.T, p *programtest.Program) func() float64 {
	t.Helper()
	admin := p.URL(t, "admin")
	return func() float64 {
		profile := programtest.Get(t, admin+"/debug/pprof/heap?gc=1&debug=1").OK(t)
		_, rest, _ := strings.Cut(profile, "\n# HeapAlloc = ")
		text, _, _ := strings.Cut(rest, "\n")
		bytes, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("the profile does not tell the heap's size: %v", err)
		}
		return bytes
	}
}

// lastingKeys are all but those of uniques, of which each hour has its own.
func lastingKeys(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	names, err := scanAll(t.Context(), rdb, "*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "uniques:") })
}

// memoryBeyondKeys is what Redis uses, less all its keys: these hold more with every viewer. In bytes.
func memoryBeyondKeys(t *testing.T, rdb *redis.Client) float64 {
	t.Helper()
	names, err := scanAll(t.Context(), rdb, "*")
	if err != nil {
		t.Fatal(err)
	}
	pipe := rdb.Pipeline()
	used := pipe.Info(t.Context(), "memory")
	sizes := make([]*redis.IntCmd, len(names))
	for i, name := range names {
		sizes[i] = pipe.MemoryUsage(t.Context(), name, 0) // of all its members
	}
	_, _ = pipe.Exec(t.Context()) // a key may be gone
	_, rest, _ := strings.Cut(used.Val(), "\nused_memory:")
	text, _, _ := strings.Cut(rest, "\r\n")
	beyond, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		beyond -= float64(size.Val())
	}
	return beyond
}

// wantLevel compares the medians of the last third and the second.
func wantLevel(t *testing.T, l level, samples []float64) {
	t.Helper()
	third := len(samples) / 3
	second, last := middle(samples[third:2*third]), middle(samples[2*third:])
	t.Logf("%s: %s in the second third, %s in the last", l.name, round(second), round(last))
	if second <= 0 || last > second+l.slack {
		t.Errorf("%s went from %s to %s, may rise by %s", l.name, round(second), round(last), round(l.slack))
	}
}

func middle(of []float64) float64 {
	return slices.Sorted(slices.Values(of))[len(of)/2]
}

func round(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }
