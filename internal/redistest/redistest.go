// Package redistest runs real redis-server processes for tests: a shared one per test binary, servers of a
// test's own that can be killed, paused and restarted, a cluster, and a master behind Sentinel.
//
// Scripts, scans and expiry behave differently in a fake, so a missing redis-server fails the test; it never skips it.
// On Linux every server dies with the test binary, also when that panics or is killed.
package redistest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests, stops its shared server and exits; leaked goroutines fail the run.
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M) {
	goleak.VerifyTestMain(runner{m})
}

// runner stops the shared server between the last test and the search for leaks.
type runner struct{ m *testing.M }

func (r runner) Run() int {
	code := r.m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// sharedServer is the one server that all tests of a binary may use.
type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
	dir    string
}

var shared sharedServer

// Shared returns the test binary's shared server, started at the first call. Tests keep apart by Prefix, and
// leave the server itself alone: one that kills it, fills it or changes its configuration needs Start.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.start(context.WithoutCancel(t.Context())) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func (s *sharedServer) start(ctx context.Context) {
	// Not the test's own directory: the server outlives the test that happens to ask first.
	if s.dir, s.err = os.MkdirTemp("", "redistest-"); s.err != nil {
		return
	}
	s.server, s.err = newServer(ctx, s.dir, nil)
}

func (s *sharedServer) close() error {
	if s.server != nil {
		s.server.close()
	}
	return os.RemoveAll(s.dir)
}

// Start runs a server for this test alone, killed when the test ends. args are redis-server options that come after, and
// so override, the package's own: Start(t, "--maxmemory", "50mb"). Nothing is persisted unless args say so.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, serverArgs(args))
}

func start(t testing.TB, args argsFunc) *Server {
	t.Helper()
	dir := t.TempDir()
	s, err := newServer(context.WithoutCancel(t.Context()), dir, args)
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
