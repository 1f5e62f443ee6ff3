// Package redistest runs real redis-server processes for tests: a shared one per test binary, servers of a
// test's own that can be killed, paused and restarted, a cluster, and a master behind Sentinel.
//
// Scripts, scans and expiry behave differently in a fake, so a missing redis-server fails the test; it never skips it.
// On Linux every server dies with the test binary, also when that panics or is killed.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests, stops its shared servers, cleans up after them and exits; leaked goroutines fail the run.
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M, cleanup ...func() error) {
	goleak.VerifyTestMain(runner{m, cleanup}, goleak.IgnoreAnyFunction(redialing))
}

// redialing is go-redis's, of a client whose server was gone: once the client is closed it ends by itself, but only after
// the second that it sleeps between two tries, which is longer than the search for leaks waits.
const redialing = "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"

// runner stops the shared servers between the last test and the search for leaks.
type runner struct {
	m       *testing.M
	cleanup []func() error
}

func (r runner) Run() int {
	code := r.m.Run()
	err := errors.Join(shared.close(), sharedCluster.close())
	for _, clean := range r.cleanup {
		err = errors.Join(err, clean())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Start runs a server for this test alone, killed when the test ends. args are redis-server options that come after, and
// so override, the package's own: Start(t, "--maxmemory", "50mb"). Nothing is persisted unless args say so.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, serverArgs(args))
}

func start(t testing.TB, args argsFunc, env ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	s, err := newServer(context.WithoutCancel(t.Context()), dir, args, env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

var prefixes atomic.Uint32

// Prefix returns a key prefix that no other call in this test binary gets, such as "t00001b", so that parallel tests
// share a server without seeing each other's keys. No prefix begins another.
func Prefix(t testing.TB) string {
	t.Helper()
	p := fmt.Sprintf("t%06x", prefixes.Add(1))
	t.Logf("redistest: key prefix %s", p)
	return p
}
