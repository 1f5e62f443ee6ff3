package aggregator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
)

// A fault with one video leaves its earlier count, and no one else's.
func TestPassIsPartialWhereAVideoFails(t *testing.T) {
	broken := errors.New("broken on purpose")
	for _, tc := range []struct{ name, command string }{
		{"read", "hrandfield"}, {"evict", "evalsha"}, {"publish", "set"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *env) {
				e.seed("bad", map[string]int64{"a": 0})
				e.seed("good", map[string]int64{"a": 0})
				e.pass()
				finished := strconv.FormatInt(e.now()-30, 10) // another second than this pass's
				must(t, e.raw.HSet(t.Context(), e.k.LastPass(), "finished_at", finished).Err())
				e.seed("bad", map[string]int64{"b": 0, "gone": 700})
				e.seed("good", map[string]int64{"b": 0, "gone": 700})
				e.newWorker() // one that remembers would not read these again yet
				key := map[string]string{"hrandfield": e.k.Online("bad"), "evalsha": e.k.Online("bad"), "set": e.k.Count("bad")}[tc.command]
				failing := true
				e.intercept(hook{
					before: func(_ context.Context, cmds []redis.Cmder) {
						for _, cmd := range cmds { // the write itself must not happen either
							if failing && names(cmd, "set", key) {
								cmd.Args()[0] = "get"
							}
						}
					},
					after: func(_ context.Context, cmds []redis.Cmder) {
						for _, cmd := range cmds {
							if failing && (names(cmd, tc.command, key) || names(cmd, "get", key)) {
								cmd.SetErr(broken)
							}
						}
					},
				})

				sum, err := e.agg.Pass(t.Context())

				if !errors.Is(err, broken) {
					t.Errorf("error: got %v, want one that wraps %q", err, broken)
				}
				if sum.Errors != 1 {
					t.Errorf("errors: got %d, want 1", sum.Errors)
				}
				e.wantCounts(map[string]string{"bad": "1", "good": "2"})
				last := e.raw.HGetAll(t.Context(), e.k.LastPass()).Val()
				if last["errors"] != "1" || last["finished_at"] != finished {
					t.Errorf("last pass: got errors %s, finished_at %s; want 1, and %s as of the last complete pass", last["errors"], last["finished_at"], finished)
				}
				e.wantPasses("partial")

				failing = false
				e.pass()
				e.wantCounts(map[string]string{"bad": "2", "good": "2"})
			})
		})
	}
}

// A large hash has no count before its last page: neither of a page's answers
// may be missing.
func TestPassIsPartialWhereAPageFails(t *testing.T) {
	broken := errors.New("broken on purpose")
	for _, command := range []string{"hscan", "hlen"} {
		t.Run(command, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *env) {
				e.seedMany("large", 1000, 0)
				e.pass()
				e.seed("large", map[string]int64{"b": 0})
				e.newWorker() // one that remembers would not read it again yet
				e.fail(command, e.k.Online("large"), broken)

				sum, err := e.agg.Pass(t.Context())

				if !errors.Is(err, broken) || sum.Errors != 1 || sum.Videos != 0 {
					t.Errorf("got %d videos, %d errors and error %v; want 0, 1 and %v", sum.Videos, sum.Errors, err, broken)
				}
				e.wantCounts(map[string]string{"large": "1000"})
			})
		})
	}
}

// A video that is not read, as its length is its count, may fail too.
func TestPassIsPartialWhereALengthFails(t *testing.T) {
	broken := errors.New("broken on purpose")
	for _, command := range []string{"hlen", "ttl"} {
		t.Run(command, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *env) {
				must(t, e.raw.Set(t.Context(), "x"+e.k.LastPass(), "without TTL, so that the others are asked for theirs", 0).Err())
				e.seed("bad", map[string]int64{"a": 0})
				e.seed("good", map[string]int64{"a": 0})
				e.pass()
				e.seed("bad", map[string]int64{"b": 0})
				e.seed("good", map[string]int64{"b": 0})
				e.fail(command, e.k.Online("bad"), broken)

				sum, err := e.agg.Pass(t.Context())

				if !errors.Is(err, broken) || sum.Errors != 1 || sum.Videos != 1 {
					t.Errorf("got %d videos, %d errors and error %v; want 1, 1 and %v", sum.Videos, sum.Errors, err, broken)
				}
				e.wantCounts(map[string]string{"bad": "1", "good": "2"})
			})
		})
	}
}

func TestPassIsPartialWhereATTLCannotBeSet(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		broken := errors.New("broken on purpose")
		e.seed("10001", map[string]int64{"a": 0})
		e.fail("expire", e.k.Online("10001"), broken)
		sum, err := e.agg.Pass(t.Context())
		if !errors.Is(err, broken) || sum.Errors != 1 || sum.Healed != 0 {
			t.Errorf("got %d healed, %d errors and error %v; want 0, 1 and %v", sum.Healed, sum.Errors, err, broken)
		}
	})
}

// A scan that breaks off has not seen everything: nothing becomes 0 by that.
func TestPassIsPartialWhereTheScanFails(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		broken := errors.New("broken on purpose")
		e.seedVideos(3000, map[string]int64{"a": 0})
		e.pass()
		scans, failing := 0, true
		e.intercept(hook{after: func(_ context.Context, cmds []redis.Cmder) {
			if names(cmds[0], "scan", "") && failing {
				if scans++; scans == 3 {
					cmds[0].SetErr(broken)
				}
			}
		}})

		sum, err := e.agg.Pass(t.Context())

		if !errors.Is(err, broken) || sum.Errors != 1 || sum.Videos == 0 {
			t.Errorf("got %d videos, %d errors and error %v; want some, 1 and %v", sum.Videos, sum.Errors, err, broken)
		}
		e.wantEach(3000, "1")
		failing = false
		if sum := e.pass(); sum.Videos != 3000 {
			t.Errorf("videos of the next pass: got %d, want 3000", sum.Videos)
		}
	})
}

// The other masters' videos are counted all the same.
func TestPassIsPartialWhereAMastersScanFails(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	e := newClusterEnv(t, c)
	broken := errors.New("broken on purpose")
	e.seedVideos(300, map[string]int64{"a": 0})
	e.pass()
	e.newWorker()
	e.intercept(hook{after: func(ctx context.Context, cmds []redis.Cmder) {
		if names(cmds[0], "scan", "") && nodeOf(ctx) == c.Masters()[1].Addr() {
			cmds[0].SetErr(broken)
		}
	}})

	sum, err := e.agg.Pass(t.Context())

	if !errors.Is(err, broken) || sum.Errors != 1 || sum.Videos == 0 {
		t.Errorf("got %+v and error %v, want some videos, 1 error, and %v", sum, err, broken)
	}
	e.wantPasses("partial")
	e.wantEach(300, "1")
}

func TestPassThatCannotBeWrittenDownIsPartial(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		must(t, e.raw.Set(t.Context(), e.k.LastPass(), "foreign", time.Hour).Err())
		e.seed("10001", map[string]int64{"a": 0})
		sum, err := e.agg.Pass(t.Context())
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || sum.Errors != 1 {
			t.Errorf("got %d errors and error %v, want 1 and WRONGTYPE", sum.Errors, err)
		}
		e.wantCounts(map[string]string{"10001": "1"})
		e.wantPasses("partial")
	})
}

// Each video that fails is counted; the error tells of the first few.
func TestPassCountsItsErrors(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Shared(t).Addr()) // of a cluster, it is the first few of each master
	for i := range 7 {
		e.seed(fmt.Sprint(i), map[string]int64{"a": 0})
	}
	e.fail("hrandfield", "", errors.New("broken on purpose"))
	sum, err := e.agg.Pass(t.Context())
	if sum.Errors != 7 || err == nil || strings.Count(err.Error(), "broken on purpose") != 5 || !strings.Contains(err.Error(), "and 2 more errors") {
		t.Errorf("got %d errors and error %v; want 7, and 5 of them told", sum.Errors, err)
	}
	if got := e.raw.HGet(t.Context(), e.k.LastPass(), "errors").Val(); got != "7" {
		t.Errorf("errors in the last pass: got %s, want 7", got)
	}
}
