package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

var (
	errPortTaken = errors.New("the port was taken")
	errExited    = errors.New("the process ended")
)

// process is one started redis-server.
type process struct {
	cmd    *exec.Cmd
	log    string        // path of the file that holds its output
	exited chan struct{} // closed when the process is gone
}

func startProcess(ctx context.Context, log string, args, env []string) (*process, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redistest: these tests need redis-server (apt-get install redis-server): %w", err)
	}
	// A new file for each start, so that an earlier start's lines do not explain this one.
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	defer func() { _ = out.Close() }()

	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = DieWithParent()
	p := &process{cmd: cmd, log: log, exited: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the process, reports that, and stays with it until it is gone.
func (p *process) run(started chan<- error) {
	// The kernel kills the child when the thread that started it ends, so that thread has to outlive it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)
	if err := p.cmd.Start(); err != nil {
		started <- fmt.Errorf("redistest: %w", err)
		return
	}
	started <- nil
	_ = p.cmd.Wait() // a killed server's exit status says nothing
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process, when it has not ended yet, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only when it is gone already
	<-p.exited
}

// explain adds the end of the server's output to err, and tells a port lost to another process from other faults.
func (p *process) explain(err error) error {
	const lines = 20
	out, readErr := os.ReadFile(p.log)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	all := strings.Split(strings.TrimSpace(string(out)), "\n")
	tail := strings.Join(all[max(0, len(all)-lines):], "\n\t")
	if strings.Contains(tail, "Address already in use") {
		err = errPortTaken
	}
	return fmt.Errorf("its output ends with\n\t%s\n%w", tail, err)
}
