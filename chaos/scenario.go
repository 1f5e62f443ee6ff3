/*
Package chaos is the fault suite: it runs recorders, workers and redis-servers as processes of their own, has players
use them, breaks what can break, and compares what Redis holds with what the players were told.

	go test ./chaos                                     the short form, as in make test
	go test ./chaos -full                               all of it, as in make chaos
	go test ./chaos -full -run '^TestKilledRecorder$' -seed 7    one scenario again

A scenario is one file, <what>_test.go. It starts a [site], a load on it, injects its faults, and ends with the judge:
no acknowledged play is missing within its window, and nobody is counted who is not there. The seed decides what players
do and which connections break, but not how the processes' threads run, so a repetition is alike and not the same.

	ledger     what was asked for, and what was answered
	load       the players
	judge      what Redis holds against what the ledger implies
	proxy      a network between a program and Redis, which can stall and break
	site       a Redis with programs on it
	moment     when a program is killed: at any time, or at a step of its work
	seen       what an operator sees of a program: its log, its metrics, its readiness
	bounds     what is promised of the time to recover

Times in a scenario's last line are measured; bounds are generous, as the machine may be busy with something else.
*/
package chaos

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headcount/internal/programtest"
)

// scenario is a test of the suite.
type scenario struct {
	*testing.T
	rand *rand.Rand // from the seed and the scenario's name
	full bool
}

// newScenario begins a scenario. When it fails it says how to repeat it.
func newScenario(t *testing.T, seed uint64, full bool) *scenario {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			form := ""
			if full {
				form = " -full"
			}
			t.Logf("to repeat it: go test ./chaos%s -run '^%s$' -seed %d", form, strings.ReplaceAll(t.Name(), "/", "$/^"), seed)
		}
	})
	name := fnv.New64()
	_, _ = name.Write([]byte(t.Name())) // never fails
	return &scenario{T: t, rand: rand.New(rand.NewPCG(seed, name.Sum64())), full: full}
}

// newProxy starts a proxy to addr that is gone when the scenario ends.
func (s *scenario) newProxy(addr string, tap func([]byte)) *proxy {
	s.Helper()
	p, err := newProxy(s.Context(), addr, s.rand, tap)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(p.close)
	return p
}

// times is how often a scenario does something in its short and in its full form.
func (s *scenario) times(short, full int) int {
	if s.full {
		return full
	}
	return short
}

// figures are what a scenario measured.
type figures struct {
	faults     int
	lost       int
	recoveries []time.Duration
}

// recovered notes how long the site took to recover from a fault.
func (f *figures) recovered(d time.Duration) { f.recoveries = append(f.recoveries, d) }

// report logs the figures in one line.
func (f *figures) report(t testing.TB, l *ledger) {
	t.Helper()
	acknowledged, open := l.totals()
	sorted := slices.Sorted(slices.Values(f.recoveries))
	var median, worst time.Duration
	if n := len(sorted); n > 0 {
		median, worst = sorted[n/2], sorted[n-1]
	}
	t.Logf("figures: %d faults injected, %d plays and leaves acknowledged, %d lost, %d of unknown outcome; time to recover: median %s, worst %s",
		f.faults, acknowledged, f.lost, open, median.Round(time.Millisecond), worst.Round(time.Millisecond))
}

// built are the programs, each built once for all scenarios.
var built builds

type builds struct {
	mu    sync.Mutex
	dir   string            // "" until open
	paths map[string]string // by name and flags
}

// open makes the folder that remove deletes.
func (b *builds) open() (err error) {
	b.paths = make(map[string]string)
	b.dir, err = os.MkdirTemp("", "chaos-")
	return err
}

func (b *builds) remove() error { return os.RemoveAll(b.dir) }

// path builds a program, unless that has been done with the same flags.
func (b *builds) path(t testing.TB, name string, flags ...string) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	id := strings.Join(append([]string{name}, flags...), " ")
	if b.paths[id] == "" {
		dir := filepath.Join(b.dir, strconv.Itoa(len(b.paths)))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		b.paths[id] = programtest.BuildIn(t, dir, name, flags...)
	}
	return b.paths[id]
}
