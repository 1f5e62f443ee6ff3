package aggregator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
)

// Whatever a server refuses, and whichever command, is an error: never a hash
// that is empty, or a count that is 0.
func TestPassTakesARefusalForNothingElse(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		for _, refusal := range []string{
			"READONLY You can't write against a read only replica.",
			"LOADING Redis is loading the dataset in memory",
			"TRYAGAIN Multiple keys request during rehashing of slot",
			"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
			"MOVED 5 127.0.0.1:1",
			"ASK 5 127.0.0.1:1",
			"OOM command not allowed when used memory > 'maxmemory'.",
		} {
			e.refuse(t, "hrandfield", refusal)
		}
		for _, command := range []string{"scan", "hrandfield", "ttl", "hlen", "hscan", "evalsha", "set"} {
			e.refuse(t, command, "CLUSTERDOWN Hash slot not served")
		}
	})
}

// refuse makes a pass in which one command gets a refusal, and one after it.
func (e *env) refuse(t *testing.T, command, refusal string) {
	t.Helper()
	for _, video := range []string{"small", "large"} {
		must(t, e.raw.Del(t.Context(), e.k.Online(video)).Err())
	}
	e.seed("small", map[string]int64{"a": 0})
	e.seedMany("large", 200, 0)
	e.newWorker()
	e.pass()
	e.seed("small", map[string]int64{"b": 0, "gone": 700})
	e.seed("large", map[string]int64{"b": 0, "gone": 700})
	if command != "hlen" { // which is for hashes that are remembered
		e.newWorker()
	}
	refused := 0
	refuse := true
	e.all = nil
	err := e.raw.Eval(t.Context(), "return redis.error_reply(ARGV[1])", []string{"k"}, refusal).Err()
	e.intercept(hook{after: func(_ context.Context, cmds []redis.Cmder) {
		for _, cmd := range cmds {
			if refuse && cmd.Name() == command {
				cmd.SetErr(err)
				refused++
			}
		}
	}})
	want := map[string]bool{"1": true, "2": true, "200": true, "201": true, "3": command == "hlen", "202": command == "hlen"}

	sum, passErr := e.agg.Pass(t.Context())

	if refused == 0 || sum.Errors == 0 || !errors.Is(passErr, err) {
		t.Errorf("%s refused %d times with %q: got %+v, %v; want errors in both", command, refused, refusal, sum, passErr)
	}
	for _, video := range []string{"small", "large"} {
		if got := e.raw.Get(t.Context(), e.k.Count(video)).Val(); !want[got] {
			t.Errorf("%s refused with %q: count of %s is %q, want the earlier one or the right one", command, refusal, video, got)
		}
	}
	refuse = false
	e.newWorker()
	e.pass()
	e.wantCounts(map[string]string{"small": "2", "large": "201"})
}

// READONLY for real: the server was demoted in the middle of a pass.
func TestPassOnADemotedServer(t *testing.T) {
	t.Parallel()
	s, other := redistest.Start(t), redistest.Start(t)
	_, port, _ := strings.Cut(other.Addr(), ":")
	e := newEnv(t, s.Addr())
	e.seedFault()
	e.newWorker()
	e.onceReading(func() {
		must(t, s.Client().ConfigSet(t.Context(), "repl-diskless-load", "disabled").Err())
		other.Pause(t) // it gives no data, so the server keeps its own
		must(t, s.Client().ReplicaOf(t.Context(), "127.0.0.1", port).Err())
	})

	sum, err := e.agg.Pass(t.Context())

	if !redis.IsReadOnlyError(err) && err == nil || sum.Errors == 0 {
		t.Errorf("got %+v, %v; want READONLY", sum, err)
	}
	e.wantEach(faultVideos, "2")
	must(t, s.Client().ReplicaOf(t.Context(), "NO", "ONE").Err())
	other.Resume(t)
	e.completes()
	e.wantEach(faultVideos, "3")
}

// LOADING for real: the server was restarted in the middle of a pass, and takes
// its time to read its data.
func TestPassOnAServerThatLoads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024") // µs
	e := newEnv(t, s.Addr())
	e.seedFault()
	must(t, s.Client().Save(t.Context()).Err())
	e.newWorker()
	e.onceReading(func() {
		s.Kill(t)
		s.Restart(t)
	})

	sum, err := e.agg.Pass(t.Context())

	if !redis.IsLoadingError(err) || sum.Errors == 0 {
		t.Errorf("got %+v, %v; want LOADING", sum, err)
	}
	e.completes()
	e.wantEach(faultVideos, "3")
}

// A restart so short that no command fails leaves the scan with a cursor that
// means nothing any more.
func TestPassIsPartialWhenTheServerIsRestarted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	e := newEnv(t, s.Addr())
	e.seedFault()
	restart := once(func() {
		s.Kill(t)
		s.Restart(t)
	})
	e.intercept(hook{after: func(_ context.Context, cmds []redis.Cmder) {
		if cmds[0].Name() == "scan" {
			restart()
		}
	}})
	if sum, err := e.agg.Pass(t.Context()); !errors.Is(err, errTookOver) || sum.Errors == 0 {
		t.Errorf("got %+v, %v; want errors, and %v", sum, err, errTookOver)
	}
	if sum := e.pass(); sum.Videos != faultVideos || sum.Viewers != 3*faultVideos {
		t.Errorf("the next pass: got %+v, want %d videos with 3 viewers each", sum, faultVideos)
	}
	e.wantEach(faultVideos, "3")
}
