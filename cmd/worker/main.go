// Command worker makes Headcount's passes. Any number of workers may run: the
// one that holds the lease makes them, the others stand by.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/pflag"

	"headcount/cmd/internal/program"
	"headcount/cmd/worker/schedule"
	"headcount/internal/config"
)

var version = "dev" // set when the program is built

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:], os.Environ, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// memoryLimit keeps the worker small, for each kind of videos that it counts: what a
// pass needs is bounded, and without a limit as much again would be garbage that waits
// to be collected. GOMEMLIMIT outweighs it.
const memoryLimit = 48 << 20

// run takes the environment whole, as variables that nobody knows are refused.
func run(ctx context.Context, args []string, getenv func() []string, stdout io.Writer) error {
	var once bool
	p, err := program.Start(config.Options{
		Program: "worker",
		Version: version,
		Args:    args,
		Environ: getenv(),
		Stdout:  stdout,
		Flags: func(f *pflag.FlagSet) {
			f.BoolVar(&once, "once", false, "make one pass under the lease and exit: 0 when it is complete or another worker holds the lease, 1 otherwise")
		},
	})
	if errors.Is(err, config.ErrDone) {
		return nil
	}
	if err != nil {
		return err
	}
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // none is set
		debug.SetMemoryLimit(memoryLimit * int64(len(p.Config.Config().Prefixes())))
	}
	if once {
		return schedule.Once(ctx, p)
	}
	return p.Run(ctx, schedule.Service, program.WatchEviction)
}
