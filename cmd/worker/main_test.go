package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/keys"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// store is a Redis and a prefix that a test's programs work on.
type store struct {
	*redistest.Server
	prefix string
	keys   keys.Keys
}

func newStore(t *testing.T, s *redistest.Server) store {
	t.Helper()
	prefix := redistest.Prefix(t)
	return store{s, prefix, keys.New(prefix)}
}

// seed writes a viewer of a video, last seen so long ago, as another program would.
func (s store) seed(t *testing.T, video, viewer string, ago time.Duration) {
	t.Helper()
	seen := strconv.FormatInt(time.Now().Add(-ago).Unix(), 10)
	if err := s.Client().HSet(t.Context(), s.keys.Online(video), viewer, seen).Err(); err != nil {
		t.Fatal(err)
	}
}

func (s store) wantCount(t *testing.T, video, want string) {
	t.Helper()
	got, err := s.Client().Get(t.Context(), s.keys.Count(video)).Result()
	if err != nil || got != want {
		t.Errorf("count of %s = %q, %v; want %q", video, got, err, want)
	}
}

func (s store) exists(t *testing.T, key string) bool {
	t.Helper()
	n, err := s.Client().Exists(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// wantTTL checks a key's TTL to be within (least, most].
func (s store) wantTTL(t *testing.T, key string, least, most time.Duration) {
	t.Helper()
	got, err := s.Client().TTL(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if got > most || got <= least {
		t.Errorf("TTL of %s = %s, want more than %s, at most %s", key, got, least, most)
	}
}

// worker starts a worker that passes often.
func (s store) worker(t *testing.T, env ...string) *programtest.Program {
	t.Helper()
	return programtest.Start(t, run, programtest.Env(s.Addr(), s.prefix, append([]string{"HEADCOUNT_WORKER_INTERVAL=100ms"}, env...)...))
}

// once runs a worker that makes one pass, and returns what it printed.
func (s store) once(t *testing.T, env ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	env = programtest.Env(s.Addr(), s.prefix, env...)
	err := run(t.Context(), []string{"--once"}, func() []string { return env }, &out)
	return out.String(), err
}

const (
	passComplete = `"msg":"pass complete"`
	leading      = `"msg":"leading: `
	standingBy   = `"msg":"standing by: another worker holds the lease"`
	cannotAsk    = `"msg":"cannot ask for the lease"`
)

func TestPasses(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	s.seed(t, "10001", "u1", 0)
	s.seed(t, "10001", "u2", 9*time.Minute)
	s.seed(t, "10001", "gone", 11*time.Minute)
	w := s.worker(t)

	line := w.Wait(t, passComplete)
	for field, want := range map[string]float64{"videos": 1, "viewers": 2, "evicted": 1, "healed": 1} {
		if got := line.Field(field); got != want {
			t.Errorf("%s = %v, want %v: %s", field, got, want, line)
		}
	}
	if took, err := time.ParseDuration(fmt.Sprint(line.Field("took"))); err != nil || took <= 0 {
		t.Errorf("took = %v, want a duration: %s", line.Field("took"), line)
	}
	s.wantCount(t, "10001", "2")
	s.wantTTL(t, s.keys.Count("10001"), 11*time.Minute, 12*time.Minute+15*time.Second)
	s.wantTTL(t, s.keys.Online("10001"), 14*time.Minute, 15*time.Minute)
	s.wantTTL(t, s.keys.LastPass(), 14*time.Minute, 15*time.Minute)
	s.wantTTL(t, s.keys.Lease(), 0, 15*time.Second)

	admin := w.URL(t, "admin")
	want := `{"status":"ready","components":{"lease":"held","redis":"ok"}}`
	if got := programtest.Get(t, admin+"/readyz").OK(t); got != want {
		t.Errorf("readyz = %s, want %s", got, want)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	holder := fmt.Sprintf("%s:%d", host, os.Getpid())
	if got := s.Client().Get(t.Context(), s.keys.Lease()).Val(); !strings.HasSuffix(got, " "+holder) {
		t.Errorf("the lease is %q, want it to end with %q", got, holder)
	}
	if err := w.Stop(t); err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
	if s.exists(t, s.keys.Lease()) {
		t.Error("the lease was not released")
	}
}

func TestLastPass(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	s.seed(t, "10001", "u1", 0)
	s.seed(t, "10002", "u1", 0)
	s.seed(t, "10002", "gone", time.Hour)
	before := time.Now().Unix()
	for range 2 {
		if _, err := s.once(t); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Client().HGetAll(t.Context(), s.keys.LastPass()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"started_at", "finished_at", "leading_since", "plays_trimmed_at"} {
		if at, err := strconv.ParseInt(all[field], 10, 64); err != nil || at < before-1 || at > time.Now().Unix()+1 {
			t.Errorf("%s = %q, want the Unix time of the pass", field, all[field])
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"passes":  "2",
		"videos":  "2",
		"viewers": "2",
		"evicted": "0",
		"errors":  "0",
		"holder":  fmt.Sprintf("%s:%d", host, os.Getpid()),
	}
	got := make(map[string]string) // of what others go by
	for field := range want {
		got[field] = all[field]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", s.keys.LastPass(), diff)
	}
}

func TestStandby(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t))
	first := s.worker(t)
	first.Wait(t, passComplete)
	second := s.worker(t)
	second.Wait(t, standingBy)

	admin := second.URL(t, "admin")
	want := `{"status":"ready","components":{"lease":"standby","redis":"ok"}}`
	if got := programtest.Get(t, admin+"/readyz").OK(t); got != want {
		t.Errorf("a standby's readyz = %s, want %s", got, want)
	}
	if got := programtest.Metric(t, admin, "headcount_lease_held"); got != 0 {
		t.Errorf("a standby's headcount_lease_held = %v, want 0", got)
	}
	if got := programtest.Metric(t, first.URL(t, "admin"), "headcount_lease_held"); got != 1 {
		t.Errorf("the holder's headcount_lease_held = %v, want 1", got)
	}

	if err := first.Stop(t); err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
	stopped := time.Now()
	second.Wait(t, leading)
	// It asks every half a second; the rest is for a busy machine.
	if took := time.Since(stopped); took > 3*time.Second {
		t.Errorf("the standby took over after %s, want within about a second", took)
	}
	second.Wait(t, passComplete)
}

func TestRefusedStart(t *testing.T) {
	t.Parallel()
	redis := redistest.Shared(t).Addr()
	for name, test := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"unknown flag":     {args: []string{"--onec"}, want: "--onec: unknown flag"},
		"unknown variable": {env: "HEADCOUNT_WORKER_INTERVALL=5s", want: "HEADCOUNT_WORKER_INTERVALL: unknown variable"},
		"broken relation":  {env: "HEADCOUNT_WORKER_INTERVAL=1h", want: "count_ttl 12m is not more than worker.interval 1h"},
	} {
		var out bytes.Buffer
		env := append(programtest.Env(redis, redistest.Prefix(t)), test.env)
		err := run(t.Context(), test.args, func() []string { return env }, &out)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: run() = %v, want an error that says %q", name, err, test.want)
		}
		if out.Len() > 0 {
			t.Errorf("%s: printed %q, want nothing: it must not have started", name, &out)
		}
	}
}

func TestOnlyAnswers(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--version":      "worker " + version + "\n",
		"--check-config": "config: ok\n",
		"--help":         "Usage: worker [flags]",
	} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{arg, "--once"}, func() []string { return nil }, &out); err != nil {
			t.Errorf("run(%s) = %v, want nil", arg, err)
		}
		if !strings.HasPrefix(out.String(), want) || strings.Contains(out.String(), `"msg"`) {
			t.Errorf("run(%s) printed %q, want no more than what begins with %q", arg, &out, want)
		}
	}
}
