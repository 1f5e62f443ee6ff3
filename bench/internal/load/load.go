// Package load runs the programs that load a server: wrk for HTTP, and
// redis-benchmark for Redis alone. Both are in C and leave most of a small
// machine to the server.
package load

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"headcount/bench/internal/dataset"
)

//go:embed requests.lua
var script []byte

// What a request asks for.
const (
	Play   = "play"   // one play
	Plays  = "plays"  // a batch of plays
	Lookup = "lookup" // one video's viewers
)

// Load is a number of connections, each of which sends its next request when
// the last one is answered.
type Load struct {
	Kind        string // Play, Plays or Lookup
	Set         dataset.Set
	Batch       int // plays in one request of the kind Plays
	Connections int
	Duration    time.Duration // whole seconds, all that wrk can tell apart
}

// Result is what a load met with.
type Result struct {
	Requests       int64   // that were answered with 200
	Refused        int64   // that were answered otherwise
	Rate           float64 // of those answered with 200, per second
	P50, P99, P999 time.Duration
	CPU            time.Duration // that the load itself took
}

// Run loads the server at url. A request without an answer is an error.
func (l Load) Run(ctx context.Context, url string) (Result, error) {
	dir, err := os.MkdirTemp("", "headcount-bench-")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "requests.lua")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Duration+startTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "wrk", "--threads", "1", "--connections", strconv.Itoa(l.Connections),
		"--duration", strconv.Itoa(int(l.Duration/time.Second)), "--timeout", "10s", "--script", file, url, "--",
		l.Kind, strconv.Itoa(l.Set.Videos), strconv.Itoa(l.Set.Viewers), strconv.Itoa(max(l.Batch, 1)))
	out, err := output(cmd)
	if err != nil {
		return Result{}, fmt.Errorf("wrk (apt-get install wrk): %w", err)
	}
	result, err := parse(out)
	result.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return result, err
}

// startTime is enough for wrk to make its requests and end.
const startTime = time.Minute

// output runs a command, which ends with this process, and returns what it wrote.
func output(cmd *exec.Cmd) ([]byte, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches it through its context
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s: %w", bytes.TrimSpace(failed.Stderr), err)
	}
	return out, err
}

// parse reads the last line that requests.lua makes wrk write.
func parse(out []byte) (Result, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var r struct{ Requests, Duration, Refused, Failed, P50, P99, P999 int64 }
	if err := json.Unmarshal(lines[len(lines)-1], &r); err != nil {
		return Result{}, fmt.Errorf("wrk's output %q: %w", out, err)
	}
	answered := r.Requests - r.Refused
	if r.Failed > 0 || answered <= 0 {
		return Result{}, fmt.Errorf("wrk: of %d requests %d were refused and %d failed", r.Requests, r.Refused, r.Failed)
	}
	return Result{
		Requests: answered,
		Refused:  r.Refused,
		Rate:     float64(answered) / (float64(r.Duration) / 1e6),
		P50:      time.Duration(r.P50) * time.Microsecond,
		P99:      time.Duration(r.P99) * time.Microsecond,
		P999:     time.Duration(r.P999) * time.Microsecond,
	}, nil
}

// HSETConnections is how many connections HSET has.
const HSETConnections = 16

// HSET writes viewers into one hash by redis-benchmark, which pipelines them,
// and returns how many a second Redis took.
func HSET(ctx context.Context, addr string, n int) (rate float64, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	out, err := output(exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(HSETConnections), "-P", "64",
		"-n", strconv.Itoa(n), "-r", "100000", "--csv",
		"HSET", "bench", "u__rand_int__", strconv.FormatInt(time.Now().Unix(), 10)))
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	return parseRate(out)
}

func parseRate(out []byte) (float64, error) {
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[1]) < 2 {
		return 0, fmt.Errorf("redis-benchmark's output %q: %w", out, errors.Join(err, errors.New("want a header and a row")))
	}
	return strconv.ParseFloat(rows[1][1], 64)
}
