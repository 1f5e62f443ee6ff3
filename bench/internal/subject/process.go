package subject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Process is a server process as its parent sees it.
type Process struct {
	URL string // of its public listener

	cmd   *exec.Cmd
	in    io.Closer
	admin string // URL
}

// Start starts a server in a process of its own, and returns when it listens.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "serve", string(arg))
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
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, in: in}
	var at addrs
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		return nil, errors.Join(fmt.Errorf("server %s: %w", spec.Kind, err), p.Close())
	}
	p.URL, p.admin = "http://"+at.Public, "http://"+at.Admin
	return p, nil
}

// Close ends the process: it stops at the end of its input.
func (p *Process) Close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// Stats is what a server process has used.
type Stats struct {
	CPU         time.Duration
	Allocations float64 // of heap objects, how many so far
	Memory      float64 // resident, bytes
}

// Stats reads the server's own metrics.
func (p *Process) Stats(ctx context.Context) (Stats, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.admin+"/metrics", nil)
	if err != nil {
		return Stats{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Stats{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return Stats{}, fmt.Errorf("metrics: %w", err)
	}
	value := func(name string) float64 {
		m := families[name].GetMetric()
		if len(m) != 1 {
			err = errors.Join(err, fmt.Errorf("metrics: no %s", name))
			return 0
		}
		return m[0].GetCounter().GetValue() + m[0].GetGauge().GetValue() // it is one or the other
	}
	stats := Stats{
		CPU:         time.Duration(value("process_cpu_seconds_total") * float64(time.Second)),
		Allocations: value("go_memstats_mallocs_total"),
		Memory:      value("process_resident_memory_bytes"),
	}
	return stats, err
}
