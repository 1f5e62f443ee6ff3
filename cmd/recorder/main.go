// Command recorder is Headcount's public HTTP service: it records plays and
// leaves, and answers how many viewers a video has.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"headcount/cmd/internal/program"
	"headcount/cmd/recorder/serve"
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

// run takes the environment whole, as variables that nobody knows are refused.
func run(ctx context.Context, args []string, getenv func() []string, stdout io.Writer) error {
	p, err := program.Start(config.Options{
		Program: "recorder",
		Version: version,
		Args:    args,
		Environ: getenv(),
		Stdout:  stdout,
		Checks:  serve.Checks(),
	})
	if errors.Is(err, config.ErrDone) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.Run(ctx, serve.Service, program.WatchEviction)
}
