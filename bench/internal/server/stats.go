package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slow is from when on a command is logged: low enough to see the longest of a
// pass, high enough that the logging itself costs nothing.
const slow = 100 * time.Microsecond

// Reading is what a server did between Watch and its end.
type Reading struct {
	CPU     time.Duration // of the thread that runs the commands, user and system
	Longest time.Duration // command; 0 when none took 0.1 ms
}

// Watch starts a measurement; the function that it returns ends it.
func (s *Server) Watch(ctx context.Context) (end func() (Reading, error), err error) {
	settings := []string{"slowlog-max-len", "100000", "slowlog-log-slower-than", strconv.FormatInt(slow.Microseconds(), 10)}
	for pair := range slices.Chunk(settings, 2) {
		if err := s.Admin.ConfigSet(ctx, pair[0], pair[1]).Err(); err != nil {
			return nil, fmt.Errorf("CONFIG SET %s: %w", pair[0], err)
		}
	}
	if err := s.Admin.Do(ctx, "SLOWLOG", "RESET").Err(); err != nil {
		return nil, fmt.Errorf("SLOWLOG RESET: %w", err)
	}
	before, err := s.CPU(ctx)
	if err != nil {
		return nil, err
	}
	return func() (Reading, error) {
		after, err := s.CPU(ctx)
		if err != nil {
			return Reading{}, err
		}
		longest, err := s.longest(ctx)
		return Reading{CPU: after - before, Longest: longest}, err
	}, nil
}

// CPU is how much CPU time the server's main thread has used.
func (s *Server) CPU(ctx context.Context) (time.Duration, error) {
	info, err := s.Admin.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, fmt.Errorf("INFO cpu: %w", err)
	}
	var total time.Duration
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := infoNumber(info, field)
		if err != nil {
			return 0, err
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}

// Memory is how many bytes the server's data takes.
func (s *Server) Memory(ctx context.Context) (int64, error) {
	info, err := s.Admin.Info(ctx, "memory").Result()
	if err != nil {
		return 0, fmt.Errorf("INFO memory: %w", err)
	}
	used, err := infoNumber(info, "used_memory_dataset")
	return int64(used), err
}

// infoNumber finds a field in the text that INFO returns.
func infoNumber(info, field string) (float64, error) {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), field+":"); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("INFO has no field %s", field)
}

// longest is the time of the longest command in the slow log, the bench's own
// left out.
func (s *Server) longest(ctx context.Context) (time.Duration, error) {
	entries, err := s.Admin.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return 0, fmt.Errorf("SLOWLOG GET: %w", err)
	}
	return longestOf(entries), nil
}

func longestOf(entries []redis.SlowLog) time.Duration {
	own := []string{"info", "slowlog", "config"}
	var longest time.Duration
	for _, e := range entries {
		if len(e.Args) > 0 && slices.Contains(own, strings.ToLower(e.Args[0])) {
			continue
		}
		longest = max(longest, e.Duration)
	}
	return longest
}

// Settle waits until the table of all keys has finished growing: while it grows,
// SCAN returns some names twice, and every pass does a share of the growing.
func (s *Server) Settle(ctx context.Context) error {
	for {
		stats, err := s.Admin.Do(ctx, "DEBUG", "HTSTATS", "0").Text()
		if err != nil {
			return fmt.Errorf("DEBUG HTSTATS: %w", err)
		}
		if !growing(stats) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// growing tells from DEBUG HTSTATS whether a table is moving to a larger one.
func growing(stats string) bool { return strings.Contains(stats, "rehashing target") }
