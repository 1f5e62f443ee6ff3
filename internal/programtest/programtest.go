// Package programtest runs Headcount's programs in tests, in the test's own
// process or as one of their own, and reads what they print.
package programtest

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"headcount/internal/redistest"
)

// Limit bounds every wait. What is waited for takes far less on an idle machine.
const Limit = 20 * time.Second

// Env is the environment of a program that works under prefix on the Redis at
// addr and listens on free ports of the loopback. more outweighs it.
func Env(addr, prefix string, more ...string) []string {
	return append([]string{
		"HEADCOUNT_REDIS_ADDRS=" + addr,
		"HEADCOUNT_PREFIX=" + prefix,
		"HEADCOUNT_RECORDER_LISTEN=127.0.0.1:0",
		"HEADCOUNT_RECORDER_ADMIN_LISTEN=127.0.0.1:0",
		"HEADCOUNT_RECORDER_DRAIN=0s", // no balancer has to notice
		"HEADCOUNT_WORKER_ADMIN_LISTEN=127.0.0.1:0",
	}, more...)
}

// Program is a program that was started.
type Program struct {
	output output
	stop   func() // asks it to end
	kill   func() // ends it; nil for one in the test's own process
	signal func(os.Signal) error
	ended  chan struct{} // closed when it has
	err    error         // how, once ended is closed

	seen int // lines that Wait is done with
}

// Run is the run function of a program's main package.
type Run func(ctx context.Context, args []string, getenv func() []string, stdout io.Writer) error

// Start runs a program in the test's own process. It is stopped when the test
// ends, and must then end without an error.
func Start(t testing.TB, run Run, env []string, args ...string) *Program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &Program{stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = run(ctx, args, func() []string { return env }, &p.output)
	}()
	p.stopAfter(t)
	return p
}

// Build builds the program in a folder of cmd, such as "recorder", and returns
// the path of its binary, which is gone when the test ends. flags are go build's.
func Build(t testing.TB, name string, flags ...string) string {
	t.Helper()
	return BuildIn(t, t.TempDir(), name, flags...)
}

// BuildIn is Build into a folder that may outlive the test.
func BuildIn(t testing.TB, dir, name string, flags ...string) string {
	t.Helper()
	binary := filepath.Join(dir, name)
	args := slices.Concat([]string{"build", "-o", binary}, flags, []string{path.Join("headcount/cmd", name)})
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go build of %s: %v\n%s", name, err, out)
	}
	return binary
}

// Exec runs a binary as a process of its own. It is stopped by SIGTERM when the
// test ends, unless it was killed, and must then end without an error.
func Exec(t testing.TB, binary string, env []string, args ...string) *Program {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, args...)
	p := &Program{ended: make(chan struct{})}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &p.output, &p.output
	cmd.SysProcAttr = redistest.DieWithParent()
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends, so that thread has to outlive it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	// Both fail only when it has ended by itself, and then its error tells.
	p.stop = func() { _ = cmd.Process.Signal(syscall.SIGTERM) }
	p.kill = func() { _ = cmd.Process.Kill() }
	p.signal = cmd.Process.Signal
	p.stopAfter(t)
	return p
}

func (p *Program) stopAfter(t testing.TB) {
	t.Cleanup(func() {
		if err := p.Stop(t); err != nil {
			t.Errorf("the program ended with: %v", err)
		}
		if t.Failed() {
			t.Logf("the program's output ends with:\n%s", p.tail())
		}
	})
}

// Stop asks the program to end and returns how it ended. For a process of its
// own that is SIGTERM.
func (p *Program) Stop(t testing.TB) error {
	t.Helper()
	p.stop()
	p.await(t)
	return p.err
}

// Kill ends a process of its own by SIGKILL.
func (p *Program) Kill(t testing.TB) {
	t.Helper()
	p.kill()
	p.await(t)
	p.err = nil // it was asked for
}

// Signal sends a signal to a process of its own. SIGSTOP freezes it, SIGCONT
// lets it go on.
func (p *Program) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := p.signal(sig); err != nil {
		t.Fatalf("signal %v: %v", sig, err)
	}
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

func (p *Program) await(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Limit):
		if p.kill != nil {
			p.kill()
		}
		t.Fatalf("the program still runs after %s; its output:\n%s", Limit, p.Output())
	}
}

// Output is all that the program has printed so far.
func (p *Program) Output() string { return p.output.String() }

// tail is the end of the output: a program that ran for long has printed much.
func (p *Program) tail() string {
	const most = 40
	lines, _ := p.output.lines()
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// Line is a line that a program printed.
type Line string

// Field is the value of a field of a JSON line as encoding/json decodes it, nil
// where there is none.
func (l Line) Field(name string) any {
	var fields map[string]any
	if json.Unmarshal([]byte(l), &fields) != nil {
		return nil
	}
	return fields[name]
}

// Wait returns the first line that contains text, of those after the one it
// returned last, and waits until there is one.
func (p *Program) Wait(t testing.TB, text string) Line {
	t.Helper()
	late := time.After(Limit)
	for {
		lines, more := p.output.lines()
		for i := p.seen; i < len(lines); i++ {
			if strings.Contains(lines[i], text) {
				p.seen = i + 1
				return Line(lines[i])
			}
		}
		select {
		case <-more:
		case <-p.ended:
			if now, _ := p.output.lines(); len(now) == len(lines) {
				t.Fatalf("the program ended (%v) without printing %q; its output:\n%s", p.err, text, p.Output())
			}
		case <-late:
			t.Fatalf("the program did not print %q within %s; its output:\n%s", text, Limit, p.Output())
		}
	}
}

// Forget makes Wait look at lines that are printed from now on.
func (p *Program) Forget() {
	lines, _ := p.output.lines()
	p.seen = len(lines)
}

// URL waits until the program listens and returns "http://host:port" of its
// listener: "public" or "admin".
func (p *Program) URL(t testing.TB, listener string) string {
	t.Helper()
	seen := p.seen
	defer func() { p.seen = seen }()
	p.seen = 0
	line := p.Wait(t, `"msg":"listening","listener":"`+listener+`"`)
	return "http://" + line.Field("addr").(string)
}

// output keeps what a program prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed at the next write; nil when nobody waits for it
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lines returns the complete lines so far, and a channel that is closed when
// there may be more.
func (o *output) lines() (lines []string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	lines = strings.Split(o.text.String(), "\n")
	return lines[:len(lines)-1], o.more
}
