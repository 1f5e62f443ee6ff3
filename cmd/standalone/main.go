// Command standalone is the whole of Headcount in one process, to try it: the
// recorder, the worker, and an embedded Redis that lives in memory and is gone
// when the program ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/pflag"

	"headcount/cmd/internal/program"
	"headcount/cmd/recorder/serve"
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

// run takes the environment whole, as variables that nobody knows are refused.
func run(ctx context.Context, args []string, getenv func() []string, stdout io.Writer) error {
	embedded, err := miniredis.Run()
	if err != nil {
		return fmt.Errorf("start the embedded Redis: %w", err)
	}
	defer embedded.Close()

	var viewers int
	p, err := program.Start(config.Options{
		Program:  "standalone",
		Version:  version,
		Args:     args,
		Environ:  getenv(),
		Stdout:   stdout,
		Checks:   serve.Checks(),
		Defaults: defaults(embedded.Addr()),
		Flags: func(f *pflag.FlagSet) {
			f.IntVar(&viewers, "simulate", 0, "how many simulated viewers come, stay and go")
		},
	})
	if errors.Is(err, config.ErrDone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := check(p.Config.Config(), embedded.Addr(), viewers); err != nil {
		return err
	}
	p.Log.Warn("this program is for trying Headcount only: its embedded Redis is not a real one, and all is lost when it stops")

	public := make(chan string, 1)
	p.Listening = announce(stdout, public)
	return p.Run(ctx, serve.Service, schedule.Service,
		func(ctx context.Context, _ *program.Program) error { return keepTime(ctx, embedded) },
		func(ctx context.Context, p *program.Program) error { return simulate(ctx, p.Log, public, viewers) },
	)
}

// defaults shorten the times, so that coming and going shows within a minute.
func defaults(redisAddr string) config.Config {
	c := config.Default()
	c.Redis.Addrs = []string{redisAddr}
	c.Window = time.Minute
	c.Worker.Interval = 5 * time.Second
	c.Web.Demo = true
	c.Log.Format = "console"
	c.Recorder.Drain = 0     // there is no balancer
	c.Recorder.RateLimit = 0 // all the simulated viewers come from one address
	return c
}

// check refuses what this program cannot be asked for: made-up viewers must not
// get into a real Redis because a variable happens to be set.
func check(c config.Config, redisAddr string, viewers int) error {
	if !slices.Equal(c.Redis.Addrs, []string{redisAddr}) {
		return errors.New("redis.addrs: the standalone program brings its own Redis; for a real one run cmd/recorder and cmd/worker")
	}
	if c.Redis.Mode != "single" || c.Redis.TLS || c.Redis.Password != "" || c.Redis.DB != 0 {
		return errors.New("redis: the standalone program brings its own Redis, which takes no mode, tls, password or db")
	}
	if viewers < 0 || viewers > maxSimulated {
		return fmt.Errorf("--simulate %d: takes 0 to %d viewers", viewers, maxSimulated)
	}
	if viewers > 0 && (len(c.Auth.PlayKeys) > 0 || c.Auth.PlayKeysFile != "") {
		return errors.New("auth: the viewers of --simulate have no play tokens")
	}
	return nil
}

// keepTime lets keys expire: the embedded Redis's TTLs stand still by themselves.
func keepTime(ctx context.Context, embedded *miniredis.Miniredis) error {
	const step = time.Second
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			embedded.FastForward(step)
		}
	}
}
