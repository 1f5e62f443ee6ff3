package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// site is Headcount at work in one scenario: a Redis, programs on it, and what their clients were told.
type site struct {
	redis    redis.UniversalClient // reads directly, past whatever stands between the programs and Redis
	keys     keys.Keys
	judge    judge
	ledger   *ledger
	balancer *balancer
	binaries binaries
	rand     *rand.Rand

	addr string   // of redis.addrs
	env  []string // of all programs
	file *programtest.ConfigFile
	load int // loads started so far
}

// binaries are the paths of the programs.
type binaries struct{ recorder, worker string }

const (
	window   = 10 * time.Minute
	keyTTL   = 15 * time.Minute
	countTTL = 12 * time.Minute
)

// newSite returns a site whose programs find Redis at addr, while the suite reads it through rdb. env outweighs what
// the programs are told otherwise.
func (s *scenario) newSite(rdb redis.UniversalClient, addr string, env ...string) *site {
	s.Helper()
	prefix := redistest.Prefix(s)
	return &site{
		redis: rdb,
		keys:  keys.New(prefix),
		judge: judge{
			prefix: prefix, window: window, keyTTL: keyTTL, countTTL: countTTL,
			known:  func(key string) bool { return strings.HasPrefix(key, prefix+":stats:") },
			checks: []check{checkOnline, checkPlays, checkUniques, checkStatisticsTTLs},
		},
		ledger:   newLedger(),
		balancer: &balancer{},
		binaries: binaries{built.path(s, "recorder"), built.path(s, "worker")},
		rand:     s.rand,
		addr:     addr,
		env: append([]string{
			"HEADCOUNT_RECORDER_RATE_LIMIT=0", // all of the load comes from one address
			"HEADCOUNT_KEY_TTL=" + keyTTL.String(),
			"HEADCOUNT_COUNT_TTL=" + countTTL.String(),
		}, env...),
		file: programtest.NewConfigFile(s, "window: "+window.String()+"\n"),
	}
}

func (s *site) environment(addr string, more []string) []string {
	env := programtest.Env(addr, s.judge.prefix, s.env...)
	return append(append(env, "HEADCOUNT_CONFIG="+s.file.Path()), more...)
}

// startRecorder starts a recorder that clients are not told of yet.
func (s *site) startRecorder(t testing.TB, env ...string) *programtest.Program {
	t.Helper()
	return programtest.Exec(t, s.binaries.recorder, s.environment(s.addr, env))
}

// addRecorder starts a recorder, waits until it listens and tells clients of it.
func (s *site) addRecorder(t testing.TB, env ...string) *programtest.Program {
	t.Helper()
	r := s.startRecorder(t, env...)
	s.balancer.add(r.URL(t, "public"))
	return r
}

// startWorker starts a worker that makes a pass after every 200 ms.
func (s *site) startWorker(t testing.TB, env ...string) *programtest.Program {
	t.Helper()
	return programtest.Exec(t, s.binaries.worker, s.environment(s.addr, append([]string{"HEADCOUNT_WORKER_INTERVAL=200ms"}, env...)))
}

// startLoad has players play, and stops them when the test ends if nobody does before.
func (s *site) startLoad(t testing.TB, o loadOptions, surprise func(answer)) *load {
	t.Helper()
	s.load++
	o.name = fmt.Sprintf("%s%d", o.name, s.load)
	l := startLoad(t.Context(), s.ledger, s.balancer, s.rand, o, surprise)
	t.Cleanup(l.stop)
	return l
}

// lastPass reads the fields of last_pass, nil while Redis does not answer.
func (s *site) lastPass(ctx context.Context) map[string]string {
	return s.redis.HGetAll(ctx, s.keys.LastPass()).Val()
}

// passes is how many passes there have been.
func (s *site) passes(ctx context.Context) int {
	n, err := strconv.Atoi(s.lastPass(ctx)["passes"])
	if err != nil {
		return 0 // none yet
	}
	return n
}

// awaitPass waits until a pass that began after now has come to its end, completely.
func (s *site) awaitPass(t testing.TB) {
	t.Helper()
	before := s.passes(t.Context())
	eventually(t, "a complete pass", func() bool {
		last := s.lastPass(t.Context())
		n, err := strconv.Atoi(last["passes"])
		return err == nil && n >= before+2 && last["errors"] == "0" // the first may have begun before now
	})
}

// wantSound waits for a pass and has the judge find no difference. It may take the judge some looks until the last
// pass's counts are all there. It returns how many acknowledged plays were lost.
func (s *site) wantSound(t testing.TB) (lostPlays int) {
	t.Helper()
	s.awaitPass(t)
	found := s.differences(t, patience)
	for i, d := range found {
		if i == 20 {
			t.Errorf("… and %d more", len(found)-i)
			break
		}
		t.Errorf("%s", d)
	}
	return count(found, lost)
}

// patience is for passes of a busy machine to deal with all that has changed.
const patience = 20 * time.Second

// differences looks until there are none, but for so long at most.
func (s *site) differences(t testing.TB, atMost time.Duration) (found []difference) {
	t.Helper()
	deadline := time.Now().Add(atMost)
	for {
		found, err := s.judge.look(t.Context(), s.redis, s.ledger)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
		<-time.After(100 * time.Millisecond)
	}
}

// wantNobodyLeft shortens the window while the programs run, and has the judge find that everybody is gone then.
func (s *site) wantNobodyLeft(t testing.TB) {
	t.Helper()
	s.judge.window = time.Second
	s.file.Replace(t, "window: 1s\n")
	eventually(t, "nobody is online", func() bool {
		names, err := scanAll(t.Context(), s.redis, s.judge.prefix+":online:*")
		if err != nil {
			return false
		}
		for _, name := range names {
			if _, isCount, _ := s.keys.Parse(name); !isCount {
				return false
			}
		}
		return true
	})
	s.wantSound(t)
}

// limit bounds every wait. What is waited for takes far less on an idle machine.
const limit = 60 * time.Second

// eventually waits until done, and asks it again and again. what names it.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(limit)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// logged reports whether a program has printed a line with this message.
func logged(p *programtest.Program, message string) bool {
	return strings.Contains(p.Output(), `"msg":"`+message)
}
