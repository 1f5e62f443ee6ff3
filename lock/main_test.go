package lock_test

import (
	"context"
	"os"
	"testing"
	"time"

	"headcount/internal/redistest"
	"headcount/lock"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(holderAddr); addr != "" {
		os.Exit(runHolder(addr, os.Getenv(holderKey)))
	}
	redistest.Main(m)
}

// acquire gets the lease or ends the test; the Term is released when the test ends.
func acquire(ctx context.Context, t *testing.T, l *lock.Lease) *lock.Term {
	t.Helper()
	term, err := l.Acquire(ctx)
	if err != nil {
		t.Fatalf("Acquire() = %v, want the lease", err)
	}
	t.Cleanup(func() { _ = term.Release() }) // a test may have stopped the server
	return term
}

// wait waits for the lease for at most limit or ends the test; the Term is released when the test ends.
func wait(t *testing.T, l *lock.Lease, limit time.Duration) *lock.Term {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	bound := time.AfterFunc(limit, cancel)
	defer bound.Stop()
	term, err := l.Wait(ctx, nil)
	if err != nil {
		t.Fatalf("Wait() = %v, want the lease within %s", err, limit)
	}
	t.Cleanup(func() { _ = term.Release() })
	return term
}
