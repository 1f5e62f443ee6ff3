package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed preload/clock.c
var clockSource string

// Clock is the wall clock of servers, which tests can step.
type Clock struct {
	library, file string
	shift         time.Duration
}

// NewClock returns a clock that shows the time, until it is stepped. It takes a C compiler.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	dir := t.TempDir()
	c := &Clock{library: filepath.Join(dir, "clock.so"), file: filepath.Join(dir, "shift")}
	source := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(source, []byte(clockSource), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Step(t, 0)
	compile := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-O", "-o", c.library, source)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("redistest: compile the clock: %v\n%s", err, out)
	}
	return c
}

// Step moves the clock on by a number of whole seconds, or back by a negative one.
func (c *Clock) Step(t testing.TB, by time.Duration) {
	t.Helper()
	c.shift += by
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600) // not truncated: servers have it mapped
	if err != nil {
		t.Fatal(err)
	}
	if err := binary.Write(f, binary.NativeEndian, int64(c.shift/time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Start is the package's Start for a server that goes by this clock.
func (c *Clock) Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, serverArgs(args), "LD_PRELOAD="+c.library, "REDISTEST_CLOCK="+c.file)
}
