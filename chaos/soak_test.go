package chaos

import (
	"flag"
	"strconv"
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
	slack float64 // by which it may rise besides a tenth: how many are at work at once depends on the machine
	read  func() float64
}

// leastSamples are taken however slow the machine is.
const leastSamples = 30

// TestSoak lets load, passes and restarts of workers go on, and compares the last third with the second: nothing that
// programs or Redis hold on to may have grown. The first third is for everything to reach its level.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newShortSite(server, "HEADCOUNT_LEASE_TTL=2s")
	recorder := site.addRecorder(t)
	restarting := site.startWorker(t) // leads until its first restart
	steady := site.startWorker(t)
	var failed failures
	load := site.startLoad(t, loadOptions{players: 20, videos: 200, pause: 40 * time.Millisecond}, failed.note)

	watched := levels(t, recorder, steady, server.Client())
	samples := make([][]float64, len(watched))
	var f figures
	began, restarted := time.Now(), time.Now()
	tick := time.NewTicker(max(*soak/300, 20*time.Millisecond))
	defer tick.Stop()
	for time.Since(began) < *soak || len(samples[0]) < leastSamples {
		<-tick.C
		for i, l := range watched {
			samples[i] = append(samples[i], l.read())
		}
		if time.Since(restarted) > max(*soak/30, 2*time.Second) {
			restarted = time.Now()
			restarting = site.restart(t, restarting, f.faults%2 == 0)
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

// restart replaces a worker: one that was told to stop, or one that was killed.
func (s *site) restart(t testing.TB, old *programtest.Program, kill bool) *programtest.Program {
	t.Helper()
	if kill {
		old.Kill(t)
	} else if err := old.Stop(t); err != nil {
		t.Errorf("a worker ended with: %v", err)
	}
	w := s.startWorker(t)
	w.URL(t, "admin") // it runs, and does not die of a SIGTERM that comes before it listens to that
	return w
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
	const mb = 1 << 20
	return []level{
		{"goroutines of the recorder", 40, of(recorder, "go_goroutines")},
		{"goroutines of a worker", 20, of(worker, "go_goroutines")},
		{"file descriptors of the recorder", 40, of(recorder, "process_open_fds")},
		{"file descriptors of a worker", 20, of(worker, "process_open_fds")},
		{"memory of the recorder", 8 * mb, of(recorder, "process_resident_memory_bytes")},
		{"memory of a worker", 8 * mb, of(worker, "process_resident_memory_bytes")},
		{"connections to Redis", 40, ofRedis("clients", "connected_clients")},
		{"memory of Redis", mb, ofRedis("memory", "used_memory")},
		{"keys in Redis", 20, func() float64 { return float64(rdb.DBSize(t.Context()).Val()) }},
	}
}

// wantLevel compares the means of the last third and the second.
func wantLevel(t *testing.T, l level, samples []float64) {
	t.Helper()
	third := len(samples) / 3
	if third == 0 {
		t.Fatalf("%s: %d samples", l.name, len(samples))
	}
	second, last := mean(samples[third:2*third]), mean(samples[2*third:])
	t.Logf("%s: %s in the second third, %s in the last", l.name, round(second), round(last))
	if second == 0 || last > second*1.1+l.slack {
		t.Errorf("%s went from %s to %s", l.name, round(second), round(last))
	}
}

func mean(of []float64) (sum float64) {
	for _, x := range of {
		sum += x
	}
	return sum / float64(len(of))
}

func round(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }
