package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestRedisKilledWithAppendOnlyFile kills a Redis that writes every command to its file before it answers. Nothing that
// was acknowledged is lost.
func TestRedisKilledWithAppendOnlyFile(t *testing.T) {
	s := begin(t)
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	site := s.newSite(server.Client(), server.Addr())
	worker := site.startWorker(t)
	recorder := site.addRecorder(t)
	site.addRecorder(t)
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 20 * time.Millisecond}, nil)

	var f figures
	for range s.times(2, 15) {
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })
		before := disturbed(t, worker)
		server.Kill(t)
		f.faults++
		wantUnreachable(t, recorder)
		wantUnreachable(t, worker)
		wantDisturbed(t, worker, before)
		server.Restart(t)
		back := time.Now()
		eventually(t, "plays are recorded again", func() bool { return load.acknowledgedSince(back) })
		f.recovered(time.Since(back))
		wantReady(t, recorder, "redis", "ok")
		wantReady(t, worker, "redis", "ok")
	}
	load.stop()
	s.hold(&f, time.Second)
	f.lost = site.wantSound(t)
	wantNotRecorded(t, recorder, "")
	wantNoPanic(t, worker)
	site.wantNobodyLeft(t)
	f.report(t, site.ledger)
}

// What programs say and count while something is wrong with Redis.
const (
	notRecorded   = "plays and leaves are not recorded: Redis refuses them or does not answer"
	recordedAgain = "plays and leaves are recorded again" // at the earliest 5 s after the last that was not
	cannotAsk     = "cannot ask for the lease"

	failedPlays    = `headcount_plays_total{outcome="failed"}`
	viewersEvicted = "headcount_viewers_evicted_total"
)

// wantUnreachable waits until a program is not ready, and says that it does not reach Redis.
func wantUnreachable(t testing.TB, p *programtest.Program) {
	t.Helper()
	admin := p.URL(t, "admin")
	eventually(t, "not ready, with redis unreachable", func() bool {
		a := programtest.Get(t, admin+"/readyz")
		return a.Code == http.StatusServiceUnavailable && strings.Contains(a.Body, `"redis":"unreachable: `)
	})
}

// wantNotRecorded waits for what a recorder tells of plays that were not recorded, and checks its reason: the first word
// of what Redis answered, "" for any.
func wantNotRecorded(t testing.TB, recorder *programtest.Program, reason string) {
	t.Helper()
	line := recorder.Wait(t, notRecorded)
	if got := line.Field("reason"); reason != "" && got != reason {
		t.Errorf("%s, want the reason %s", line, reason)
	}
	wantCounted(t, recorder, failedPlays, 0)
}

// wantNoPanic checks that no pass ended by a fault of the program.
func wantNoPanic(t testing.TB, worker *programtest.Program) {
	t.Helper()
	if logged(worker, "a pass panicked") {
		t.Error("a pass panicked")
	}
}

// hold holds the times to recover to what is promised. The few of the short form have no median worth the name: of
// them only the worst counts.
func (s *scenario) hold(f *figures, promised time.Duration) {
	s.Helper()
	if s.full {
		f.holdTo(s, promised)
		return
	}
	for _, took := range f.recoveries {
		if took > leeway*promised {
			s.Errorf("recovery took %s, want %s, and at most %s on a busy machine", took, promised, leeway*promised)
		}
	}
}

// short is a window in which a scenario can wait for everybody's next beat.
const short = 4 * time.Second

// newShortSite is newSite with a short window.
func (s *scenario) newShortSite(server *redistest.Server, env ...string) *site {
	s.Helper()
	site := s.newSite(server.Client(), server.Addr(), append([]string{
		"HEADCOUNT_WINDOW=" + short.String(), "HEADCOUNT_KEY_TTL=" + (3 * short).String(), "HEADCOUNT_COUNT_TTL=" + (2 * short).String(),
		"HEADCOUNT_WORKER_INTERVAL=200ms", // the default is longer than that
	}, env...)...)
	site.judge.window, site.judge.keyTTL, site.judge.countTTL = short, 3*short, 2*short
	return site
}

// TestRedisKilledWithoutPersistence kills a Redis that comes back empty. What was recorded is gone; one window later
// the numbers are right again, and until then nothing claims to be newer than the last complete pass.
func TestRedisKilledWithoutPersistence(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newShortSite(server, "HEADCOUNT_LOOKUP_CACHE=0s", "HEADCOUNT_LOOKUP_ON_MISS=zero")
	worker := site.startWorker(t)
	recorder := site.addRecorder(t)
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 20 * time.Millisecond}, nil)
	site.awaitPass(t)
	watch := site.watchAsOf(t, recorder)

	var f figures
	for range s.times(1, 5) {
		worker.Signal(t, syscall.SIGSTOP) // or it would make a pass as soon as Redis is back, and nothing be unknown
		watch.await(t, known, "lookups know of the last pass")
		f.lost += len(site.viewers(t))
		server.Kill(t)
		f.faults++
		wantUnreachable(t, recorder)
		watch.await(t, stillKnown, "lookups are answered by what was known last")
		server.Restart(t)
		back := time.Now()
		eventually(t, "plays are recorded again", func() bool { return load.acknowledgedSince(back) })
		watch.await(t, notKnown, "lookups say that they do not know")
		if others := watch.await(t, notKnown, "lookups say so again"); others > 0 {
			t.Errorf("%d lookups knew, before a pass", others)
		}
		worker.Signal(t, syscall.SIGCONT)
		watch.await(t, known, "lookups know again")
		f.recovered(time.Since(back))
		<-time.After(time.Until(back.Add(short + 2*time.Second))) // whoever plays has beaten since; times are whole seconds
		load.stop()
		site.ledger.doubt(time.Time{}, back) // all that was there is gone, statistics too
		site.wantSound(t)
		load = site.startLoad(t, load.o, nil)
	}
	load.stop()
	watch.stop()
	s.hold(&f, 2*time.Second) // of which a pass and some lookups are part
	site.wantSound(t)
	wantNotRecorded(t, recorder, "")
	wantCounted(t, recorder, `headcount_lookups_total{outcome="stale"}`, 0)
	wantCounted(t, recorder, "headcount_lookups_unknown_total", 0)
	wantLogged(t, worker, losesLease) // it went with all the rest
	wantReady(t, worker, "lease", "held")
	wantNoPanic(t, worker)
	f.report(t, site.ledger)
}

// viewers are who is in Redis now.
func (s *site) viewers(t testing.TB) (all []viewing) {
	t.Helper()
	now, err := takeSnapshot(t.Context(), s.redis, s.judge.prefix+":*")
	if err != nil {
		t.Fatal(err)
	}
	for video, viewers := range (evidence{judge: &s.judge, snapshot: now}).hashes() {
		for viewer := range viewers {
			all = append(all, viewing{video, viewer})
		}
	}
	return all
}

// age is what a lookup says of its number's time.
type age int

const (
	known      age = iota
	stillKnown     // while Redis does not answer
	notKnown       // null
)

// asOfWatch asks for a count again and again, and holds its as_of against the last complete pass.
type asOfWatch struct {
	stop func()

	mu     sync.Mutex
	seen   map[age]int
	newest int64    // finish of the last complete pass that Redis has told of, Unix seconds
	wrong  []string // answers that claim to be newer
}

// await waits until some answers have been of that age, and returns those of other ages that came meanwhile.
func (w *asOfWatch) await(t testing.TB, a age, what string) (others int) {
	t.Helper()
	const some = 3
	w.mu.Lock()
	clear(w.seen)
	w.mu.Unlock()
	eventually(t, what, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.seen[a] >= some
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[known] + w.seen[stillKnown] + w.seen[notKnown] - w.seen[a]
}

// watchAsOf watches until stopped, and then fails the test if a count has ever claimed to be newer than the last complete
// pass.
func (s *site) watchAsOf(t *testing.T, recorder *programtest.Program) *asOfWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client := newClient(s.ledger)
	w := &asOfWatch{seen: make(map[age]int)}
	base := recorder.URL(t, "public")
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			a := client.get(ctx, base, videoPath("10001")+"/viewers")
			finished, err := s.redis.HGet(ctx, s.keys.LastPass(), "finished_at").Int64() // after the answer
			w.note(a, finished, err)
			<-tick.C
		}
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		watching.Wait()
		client.close()
		for _, line := range w.wrong[:min(len(w.wrong), 5)] {
			t.Errorf("%s", line)
		}
	})
	t.Cleanup(w.stop)
	return w
}

func (w *asOfWatch) note(a answer, finished int64, err error) {
	var body struct {
		AsOf *time.Time `json:"as_of"`
	}
	if a.code != http.StatusOK || json.Unmarshal(a.body, &body) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newest = max(w.newest, finished)
	switch {
	case body.AsOf == nil:
		w.seen[notKnown]++
		return
	case err == nil || errors.Is(err, redis.Nil):
		w.seen[known]++
	default:
		w.seen[stillKnown]++
	}
	if body.AsOf.Unix() > w.newest {
		w.wrong = append(w.wrong, fmt.Sprintf("as of %d, but the last complete pass finished at %d", body.AsOf.Unix(), w.newest))
	}
}
