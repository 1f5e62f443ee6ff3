package server

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed preload/clock.c
var clockSource []byte

// Clock is a wall clock that moves only when it is told to, for servers that are
// started with its environment: an hour of theirs can pass in a minute.
type Clock struct {
	dir  string
	file *os.File
	now  int64 // Unix seconds
}

// NewClock makes a clock that shows the present time. It needs a C compiler: a
// server gets the clock by a few lines of C that are preloaded into it.
func NewClock(ctx context.Context) (*Clock, error) {
	dir, err := os.MkdirTemp("", "headcount-bench-clock-")
	if err != nil {
		return nil, err
	}
	c := &Clock{dir: dir, now: time.Now().Unix()}
	if err := c.build(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Clock) build(ctx context.Context) (err error) {
	source := filepath.Join(c.dir, "clock.c")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return err
	}
	cc := exec.CommandContext(ctx, "cc", "-O2", "-shared", "-fPIC", "-o", c.library(), source)
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the clock (apt-get install gcc libc6-dev): %s: %w", out, err)
	}
	if c.file, err = os.Create(c.path()); err != nil {
		return err
	}
	return c.Advance(0)
}

func (c *Clock) library() string { return filepath.Join(c.dir, "clock.so") }
func (c *Clock) path() string    { return filepath.Join(c.dir, "now") }

// Env is the environment of a server that goes by the clock.
func (c *Clock) Env() []string {
	return []string{"LD_PRELOAD=" + c.library(), "BENCH_CLOCK=" + c.path()}
}

// Now is what the clock shows, Unix seconds.
func (c *Clock) Now() int64 { return c.now }

// Advance sets the clock forward by whole seconds, at once.
func (c *Clock) Advance(by time.Duration) error {
	c.now += int64(by / time.Second)
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(c.now)), 0)
	return err
}

// Close removes the clock; its servers must have ended.
func (c *Clock) Close() error {
	var err error
	if c.file != nil {
		err = c.file.Close()
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
