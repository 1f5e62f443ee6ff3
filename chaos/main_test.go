package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"headcount/internal/redistest"
)

var (
	full = flag.Bool("full", false, "inject as many faults as the documentation states figures for, not a few")
	seed = flag.Uint64("seed", 0, "what players do and which connections break; 0: a random one")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	redis.SetLogger(&logging.VoidLogger{}) // it would write of every dial that a dead server refuses
	fmt.Printf("chaos: -seed %d\n", *seed)
	if err := built.open(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	redistest.Main(m, built.remove)
}

// begin begins a scenario as the flags say.
func begin(t *testing.T) *scenario {
	t.Helper()
	return newScenario(t, *seed, *full)
}
