package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { Main(m) }

func TestSharedIsOneServer(t *testing.T) {
	t.Parallel()
	if a, b := Shared(t), Shared(t); a != b {
		t.Errorf("Shared() = %s, then %s; want one server", a.Addr(), b.Addr())
	}
	key := Prefix(t) + ":k"
	if err := Shared(t).Client().Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Errorf("SET on the shared server: %v", err)
	}
}

func TestPrefixesDiffer(t *testing.T) {
	t.Parallel()
	if a, b := Prefix(t), Prefix(t); a == b || len(a) != len(b) {
		t.Errorf("Prefix() = %q, then %q; want two of one length", a, b)
	}
}

func TestStartPassesOptions(t *testing.T) {
	t.Parallel()
	s := Start(t, "--maxmemory", "50mb", "--requirepass", "secret")
	got, err := s.Client().ConfigGet(t.Context(), "maxmemory").Result()
	if err != nil {
		t.Fatalf("CONFIG GET: %v", err)
	}
	if want := "52428800"; got["maxmemory"] != want {
		t.Errorf("maxmemory = %s, want %s", got["maxmemory"], want)
	}
}

func TestStartReportsServerOutput(t *testing.T) {
	t.Parallel()
	_, err := newServer(t.Context(), t.TempDir(), serverArgs([]string{"--no-such-option", "1"}))
	if !errors.Is(err, errExited) || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("newServer with a bad option: error %v, want %v and the server's own words", err, errExited)
	}
}

func TestStartOnTakenPort(t *testing.T) {
	t.Parallel()
	taken := Start(t)
	asked := 0
	args := func(dir string, port int) ([]string, error) {
		if asked++; asked == 1 {
			port = taken.port
		}
		return serverArgs(nil)(dir, port)
	}
	s, err := newServer(t.Context(), t.TempDir(), args)
	if err != nil {
		t.Fatalf("newServer, the first port taken: %v", err)
	}
	defer s.close()
	if asked != 2 || s.port == taken.port {
		t.Errorf("ports asked for = %d, want 2 and not the taken %d", asked, taken.port)
	}
}

func TestLaunchTellsOtherServerOnPort(t *testing.T) {
	t.Parallel()
	taken := Start(t)
	s := &Server{port: taken.port, dir: t.TempDir(), args: taken.args, client: taken.client}
	if err := s.launch(t.Context()); !errors.Is(err, errPortTaken) {
		t.Errorf("launch on another server's port: %v, want %v", err, errPortTaken)
	}
	s.proc.kill()
}

func TestKillAndStopThenRestart(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*Server, testing.TB){"Kill": (*Server).Kill, "Stop": (*Server).Stop}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t)
			ctx, addr := t.Context(), s.Addr()
			if err := s.Client().Set(ctx, "k", "v", 0).Err(); err != nil {
				t.Fatalf("SET: %v", err)
			}
			end(s, t)
			if err := s.Client().Ping(ctx).Err(); err == nil {
				t.Errorf("PING after %s: no error", name)
			}
			s.Restart(t)
			if err := s.Client().Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
				t.Errorf("GET after Restart: %v, want %v", err, redis.Nil)
			}
			if s.Addr() != addr {
				t.Errorf("Addr after Restart = %s, want %s", s.Addr(), addr)
			}
		})
	}
}

func TestRestartKeepsAppendOnlyData(t *testing.T) {
	t.Parallel()
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	if err := s.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	s.Kill(t)
	s.Restart(t)
	if got, err := s.Client().Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("GET after Restart = %q, %v, want v", got, err)
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Client().Ping(ctx).Err(); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("PING while paused: %v, want a timeout", err)
	}
	s.Resume(t)
	if err := s.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Resume: %v", err)
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

func TestMissingBinary(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := newServer(t.Context(), t.TempDir(), nil)
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("newServer without the binary: %v, want %v and how to install it", err, exec.ErrNotFound)
	}
}

// helperEnv makes TestServerDiesWithTestBinary, run in a second process, the one that is killed.
const helperEnv = "REDISTEST_HELPER"

func TestServerDiesWithTestBinary(t *testing.T) {
	if os.Getenv(helperEnv) != "" {
		fmt.Println(Start(t).Addr())
		select {} // until killed
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), helperEnv+"=1", "TMPDIR="+t.TempDir())
	addr := startHelper(t, cmd)
	if err := dial(t.Context(), addr); err != nil {
		t.Fatalf("dial the helper's server: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("kill the helper: %v", err)
	}
	_ = cmd.Wait() // killed: its status says nothing
	gone := func(ctx context.Context) error {
		if err := dial(ctx, addr); !errors.Is(err, syscall.ECONNREFUSED) {
			return errors.Join(errors.New("no refusal"), err)
		}
		return nil
	}
	if err := poll(t.Context(), startTimeout, nil, gone); err != nil {
		t.Errorf("the killed helper's server on %s: %v", addr, err)
	}
}

// startHelper starts the helper and returns the first line of its output.
func startHelper(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("pipe: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the helper: %v", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("read the helper's first line: %v", err)
	}
	return strings.TrimSpace(line)
}
