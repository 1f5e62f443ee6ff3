package redistest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	host         = "127.0.0.1"
	startTimeout = 15 * time.Second // a start takes some 20 ms; a loaded machine is slower
	portAttempts = 5
)

// Server is one redis-server process. Addr and Client may be used from any goroutine; Kill, Restart, Stop, Pause and
// Resume from one at a time.
type Server struct {
	port   int
	dir    string
	args   []string
	env    []string // besides the test's own
	proc   *process
	client *redis.Client
}

// argsFunc gives the command line of a server that listens on port and keeps its files in dir.
type argsFunc func(dir string, port int) ([]string, error)

// serverArgs is the argsFunc of a plain server with extra options.
func serverArgs(extra []string) argsFunc {
	return func(dir string, port int) ([]string, error) {
		return append([]string{
			"--bind", host,
			"--dir", dir,
			"--daemonize", "no",
			"--save", "",
			"--appendonly", "no",
		}, append(portArgs(port, extra), extra...)...), nil
	}
}

// portArgs make a server listen on port: by TLS, when its other options are about that, and then not by the default port.
func portArgs(port int, args []string) []string {
	if option(args, "--tls-cert-file") != "" {
		return []string{"--port", "0", "--tls-port", strconv.Itoa(port)}
	}
	return []string{"--port", strconv.Itoa(port)}
}

// newServer starts a server on a free port and waits until it answers. A nil argsFunc means a plain server.
func newServer(ctx context.Context, dir string, args argsFunc, env ...string) (*Server, error) {
	if args == nil {
		args = serverArgs(nil)
	}
	for range portAttempts - 1 {
		s, err := tryServer(ctx, dir, args, env)
		if !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return tryServer(ctx, dir, args, env)
}

func tryServer(ctx context.Context, dir string, args argsFunc, env []string) (*Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	argv, err := args(dir, port)
	if err != nil {
		return nil, err
	}
	s := &Server{port: port, dir: dir, args: argv, env: env}
	o, err := s.clientOptions()
	if err != nil {
		return nil, err
	}
	s.client = redis.NewClient(o)
	if err := s.launch(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// clientOptions are those of a client that fails fast and sends nothing that Redis 7.0 would count as an error.
func (s *Server) clientOptions() (*redis.Options, error) {
	tlsConfig, err := clientTLS(s.args)
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	return &redis.Options{
		Addr:                     s.Addr(),
		Password:                 option(s.args, "--requirepass"),
		TLSConfig:                tlsConfig,
		ContextTimeoutEnabled:    true,
		DialerRetries:            1,
		DisableIdentity:          true,
		MaintNotificationsConfig: noMaintNotifications(),
	}, nil
}

func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// option returns the value that follows name in args, or "".
func option(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// launch starts the process and waits until it answers.
func (s *Server) launch(ctx context.Context) error {
	proc, err := startProcess(ctx, filepath.Join(s.dir, "redis.log"), s.args, s.env)
	if err != nil {
		return err
	}
	s.proc = proc
	if err := poll(ctx, startTimeout, proc.exited, s.answers); err != nil {
		return fmt.Errorf("redistest: server on %s did not start: %w", s.Addr(), proc.explain(err))
	}
	return nil
}

// answers reports whether our own process answers, and not another that got the port first.
func (s *Server) answers(ctx context.Context) error {
	if err := dial(ctx, s.Addr()); err != nil {
		return err // the client would log each refusal
	}
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("process_id:%d\r\n", s.proc.pid()); !strings.Contains(info, want) {
		return fmt.Errorf("another process answers on %s", s.Addr())
	}
	return nil
}

// close kills the process and closes the client; it may follow Kill or Stop.
func (s *Server) close() {
	if s.proc != nil {
		s.proc.kill()
	}
	_ = s.client.Close()
}

// Addr returns host:port. It stays the same over restarts.
func (s *Server) Addr() string { return host + ":" + strconv.Itoa(s.port) }

// Client returns a plain client for seeding and reading keys, shared by all callers and closed with the server.
func (s *Server) Client() *redis.Client { return s.client }

// Kill ends the process with SIGKILL, as a crash would, and waits until it is gone.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.proc.kill()
}

// Stop shuts the server down cleanly, and waits until it is gone. Nothing is saved unless the server's options say so.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	select {
	case <-s.proc.exited:
	case <-time.After(startTimeout):
		t.Fatalf("redistest: server on %s did not stop: %v", s.Addr(), s.proc.explain(context.DeadlineExceeded))
	}
}

// Restart starts the server again on its port and directory after Kill or Stop, and waits until it answers.
// Its data is gone, unless it was started with "--appendonly", "yes".
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	select {
	case <-s.proc.exited:
	default:
		t.Fatalf("redistest: Restart of the server on %s, which still runs", s.Addr())
	}
	if err := s.launch(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// Pause freezes the process with SIGSTOP: connections stay open and nothing answers.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
}

// Resume lets a paused process go on.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *Server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("redistest: signal %v to the server on %s: %v", sig, s.Addr(), err)
	}
}
