// Command bench measures Headcount's pass, its recorder and its lookups against
// other ways to do the same.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"headcount/bench/internal/report"
	"headcount/bench/internal/subject"
	"headcount/bench/internal/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const usage = "usage: bench pass|record|lookup|stats [-n repetitions] [--only workload,...] [--scale factor] [--quick] [--json]"

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "child": // started by ourselves, to be measured alone
		return workload.Child(ctx, args[1], stdin, stdout)
	case len(args) == 2 && args[0] == "serve": // likewise, to be loaded
		return subject.Serve(ctx, args[1], stdin, stdout)
	case len(args) > 0 && workload.All()[args[0]] != nil:
		return measure(ctx, args[0], args[1:], stdout, stderr)
	}
	return errors.New(usage)
}

// measure runs those workloads of a command that are asked for and prints their tables, each as soon as it
// is there. A bar that is not met is no error; a wrong count is.
func measure(ctx context.Context, command string, args []string, stdout, stderr io.Writer) error {
	r := &workload.Runner{Progress: io.Discard}
	if isTerminal(stderr) {
		r.Progress = stderr
	}
	flags := flag.NewFlagSet("bench "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&r.Repetitions, "n", 5, "repetitions; the tables show medians")
	flags.Float64Var(&r.Scale, "scale", 1, "multiply all sizes; the bars are meant for 1")
	flags.BoolVar(&r.Quick, "quick", false, "a smoke test of all workloads: tiny, one repetition")
	only := flags.String("only", "", "names of workloads, separated by commas")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if r.Quick {
		r.Repetitions, r.Scale = 1, 0.01
	}
	if r.Repetitions < 1 || r.Scale <= 0 {
		return errors.New("-n and --scale must be positive")
	}
	chosen, err := choose(workload.All()[command], *only)
	if err != nil {
		return err
	}
	tables := make([]report.Table, 0, len(chosen))
	for _, w := range chosen {
		t, err := w.Run(ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
		tables = append(tables, t)
		if *asJSON {
			continue
		}
		if err := t.Write(stdout); err != nil {
			return err
		}
	}
	if !*asJSON {
		return nil
	}
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	return out.Encode(tables)
}

// choose returns the workloads with the names given, or all.
func choose(all []workload.Workload, names string) ([]workload.Workload, error) {
	if names == "" {
		return all, nil
	}
	var chosen []workload.Workload
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no workload is called %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// isTerminal tells whether somebody watches: a log file wants no progress bar.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
