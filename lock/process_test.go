package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/lock"
)

// With these two set, the test binary is a holder and nothing else.
const (
	holderAddr = "LOCK_TEST_HOLDER_ADDR"
	holderKey  = "LOCK_TEST_HOLDER_KEY"
)

// runHolder acquires the lease and says so; after the next line on its input it says how it sees its Term.
func runHolder(addr, key string) int {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	term, err := lock.New(client, lock.Options{Key: key, TTL: realTTL}).Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("acquired")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		fmt.Println(err)
		return 1
	}
	held := term.Held()
	<-term.Context().Done()
	fmt.Println("held:", held, "lost:", errors.Is(context.Cause(term.Context()), lock.ErrLost))
	return 0
}

func TestStoppedProcessSeesItsTermEnded(t *testing.T) {
	t.Parallel()
	client, o := shared(t)
	o.Retry = 10 * time.Millisecond

	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), holderAddr+"="+client.Options().Addr, holderKey+"="+o.Key)
	holder.Stderr = os.Stderr
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if lines.Scan(); lines.Text() != "acquired" {
		t.Fatalf("the holder says %q, want that it acquired the lease", lines.Text())
	}

	signal(t, holder, syscall.SIGSTOP)
	wait(t, lock.New(client, o), limit)
	if _, err := fmt.Fprintln(stdin); err != nil {
		t.Error(err)
	}
	signal(t, holder, syscall.SIGCONT)

	if lines.Scan(); lines.Text() != "held: false lost: true" {
		t.Errorf("the continued holder says %q, want %q", lines.Text(), "held: false lost: true")
	}
	if err := holder.Wait(); err != nil {
		t.Error(err)
	}
}

func signal(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
