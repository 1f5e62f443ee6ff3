// Package server runs redis-server processes for the bench and reads what they
// say about themselves.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

const (
	host         = "127.0.0.1"
	startTimeout = 15 * time.Second
	timeout      = time.Minute // of one command; a busy machine is slow, not broken
)

// Server is one redis-server process. It keeps nothing on disk.
type Server struct {
	Addr  string                // host:port
	Admin redis.UniversalClient // for filling and measuring

	dir  string
	stop context.CancelFunc
	gone chan struct{} // closed when the process has ended
}

// Start starts a server on a free port, with extra environment variables, and
// waits until it answers. It ends when ctx does, by Close, or with this process.
func Start(ctx context.Context, env ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "headcount-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort(host, strconv.Itoa(port)), dir: dir, gone: make(chan struct{})}
	if s.Admin, err = Connect(s.Addr); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	if err := s.launch(ctx, port, env); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Connect returns a client as the product makes it, but a patient one.
func Connect(addr string) (redis.UniversalClient, error) {
	return redisclient.New(redisclient.Options{Mode: redisclient.Single, Addrs: []string{addr}, Timeout: timeout})
}

// Close ends the process and removes its directory.
func (s *Server) Close() error {
	err := s.Admin.Close()
	s.stop()
	<-s.gone
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) launch(ctx context.Context, port int, env []string) error {
	log, err := os.Create(filepath.Join(s.dir, "redis.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, "redis-server", "--port", strconv.Itoa(port), "--bind", host,
		"--dir", s.dir, "--save", "", "--appendonly", "no",
		"--enable-debug-command", "local") // for Settle
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go func() {
		// The kernel ends the child with the thread that started it, so the
		// thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.gone)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it ends by a signal, and that is no error
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("redis-server (apt-get install redis-server): %w", err)
	}
	return s.ready(ctx, cmd.Process.Pid)
}

// ready waits until our own process answers, not another that got the port.
func (s *Server) ready(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		info, err := s.Admin.Info(ctx, "server").Result()
		if err == nil && strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
			return nil
		}
		select {
		case <-s.gone:
			return fmt.Errorf("redis-server ended: %w", s.explain())
		case <-ctx.Done():
			return fmt.Errorf("redis-server on %s does not answer: %w", s.Addr, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// explain returns the server's own words.
func (s *Server) explain() error {
	log, err := os.ReadFile(filepath.Join(s.dir, "redis.log"))
	if err != nil {
		return err
	}
	return errors.New(strings.TrimSpace(string(log)))
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
