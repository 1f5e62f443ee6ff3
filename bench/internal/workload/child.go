package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
)

// memoryLimit is the soft limit that cmd/worker sets for itself.
const memoryLimit = 48 << 20

// ChildSpec tells a child process whom to be.
type ChildSpec struct {
	Contender string
	Addr      string
	Set       dataset.Set
	Anew      bool // every pass by a new contender, one that remembers nothing
}

// ChildResult is what one pass in a child process took.
type ChildResult struct {
	Viewers     int64
	Began, Done time.Time
	Peak        int64  // bytes: the process's memory at its highest so far
	Error       string // empty: none
}

// Child is the child process: it makes a pass for every line of stdin, and
// writes a ChildResult to stdout as a line of JSON.
func Child(ctx context.Context, arg string, stdin io.Reader, stdout io.Writer) error {
	var spec ChildSpec
	if err := json.Unmarshal([]byte(arg), &spec); err != nil {
		return err
	}
	kind, err := contender.Find(spec.Contender)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(memoryLimit)
	var c contender.Contender
	out := json.NewEncoder(stdout)
	for in := bufio.NewScanner(stdin); in.Scan(); {
		if c == nil || spec.Anew {
			if c, err = replace(c, kind, spec); err != nil {
				return err
			}
		}
		if err := out.Encode(timedPass(ctx, c)); err != nil {
			return err
		}
	}
	return nil
}

func replace(old contender.Contender, kind contender.Kind, spec ChildSpec) (contender.Contender, error) {
	if old != nil {
		if err := old.Close(); err != nil {
			return nil, err
		}
	}
	return kind.New(spec.Addr, spec.Set, new(atomic.Int64))
}

func timedPass(ctx context.Context, c contender.Contender) ChildResult {
	r := ChildResult{Began: time.Now()}
	viewers, err := c.Pass(ctx)
	r.Viewers, r.Done = viewers, time.Now()
	if err == nil {
		r.Peak, err = peakMemory()
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// peakMemory is the most memory that this process has had, in bytes.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	return parsePeak(string(status))
}

func parsePeak(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}

// child is a child process as its parent sees it.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startChild(ctx context.Context, spec ChildSpec) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "child", string(arg))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches it through ctx
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd: cmd, in: in, out: json.NewDecoder(out)}, cmd.Start()
}

// pass has the child make a pass.
func (c *child) pass() (ChildResult, error) {
	var r ChildResult
	if _, err := io.WriteString(c.in, "pass\n"); err != nil {
		return r, err
	}
	if err := c.out.Decode(&r); err != nil {
		return r, fmt.Errorf("child process: %w", err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("child process: %s", r.Error)
	}
	return r, nil
}

// close ends the child: it stops at the end of its input.
func (c *child) close() error { return errors.Join(c.in.Close(), c.cmd.Wait()) }
