package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
	"headcount/lock"
)

func TestAcquireFromAFullRedis(t *testing.T) {
	t.Parallel()
	server, o := own(t)
	limitMemory(t, server, "1")
	first, second := lock.New(server.Client(), o), lock.New(server.Client(), o)
	if _, err := first.Acquire(t.Context()); !errors.Is(err, lock.ErrFull) {
		t.Errorf("Acquire() of a free lease on a full Redis = %v, want ErrFull", err)
	}
	if _, err := first.Wait(t.Context(), nil); !errors.Is(err, lock.ErrFull) {
		t.Errorf("Wait() for a free lease on a full Redis = %v, want ErrFull", err)
	}

	limitMemory(t, server, "0")
	term := acquire(t.Context(), t, first)
	limitMemory(t, server, "1")
	if _, err := second.Acquire(t.Context()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("Acquire() of a held lease on a full Redis = %v, want ErrHeld", err)
	}
	if err := term.Release(); err != nil {
		t.Errorf("Release() on a full Redis = %v, want nil", err)
	}
}

// A Redis before version 7 tells in the middle of its answer that a script was refused memory.
func TestAcquireFromAFullOldRedis(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	const inTheMiddle = "ERR Error running script (call to f_6ce3): @user_script:2: @user_script: 2: -OOM command not allowed when used memory > 'maxmemory'. "
	lease := lock.New(refusing{client, inTheMiddle}, o)
	if _, err := lease.Acquire(t.Context()); !errors.Is(err, lock.ErrFull) {
		t.Errorf("Acquire() = %v, want ErrFull", err)
	}
}

// refusing answers calls that have arguments, as those to obtain a lease have, with an error.
type refusing struct {
	*redis.Client
	answer string
}

func (r refusing) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	if len(args) == 0 {
		return r.Client.EvalSha(ctx, sha1, keys)
	}
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(answer(r.answer))
	return cmd
}

// answer is an error that Redis answered.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func limitMemory(t *testing.T, s *redistest.Server, bytes string) {
	t.Helper()
	if err := s.Client().ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
		t.Fatalf("CONFIG SET maxmemory: %v", err)
	}
}
