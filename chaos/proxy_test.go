package chaos

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

// TestProxy sees each mode do what it says.
func TestProxy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p, err := newProxy(t.Context(), server.Addr(), rand.New(rand.NewPCG(1, 2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	db, err := redisclient.New(redisclient.Options{Mode: redisclient.Single, Addrs: []string{p.addr()}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, step := range []struct {
		mode    mode
		answers bool
	}{{forwarding, true}, {stalling, false}, {forwarding, true}, {blackholing, false}, {forwarding, true}, {resetting, false}, {forwarding, true}} {
		p.set(step.mode)
		err := ping(t, db)
		if step.answers {
			eventually(t, "an answer", func() bool { return ping(t, db) == nil })
		} else if err == nil {
			t.Errorf("mode %d: there was an answer, want none", step.mode)
		}
	}
	p.setResets(1)
	if err := ping(t, db); err == nil || p.injected() == 0 {
		t.Errorf("all connections are reset, and there was an answer, %v, %d resets", err, p.injected())
	}
}

func ping(t *testing.T, db redis.UniversalClient) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	return db.Ping(ctx).Err()
}
