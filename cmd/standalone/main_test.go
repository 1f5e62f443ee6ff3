package main

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// env is that of a standalone program on free ports, which passes often.
var env = []string{
	"HEADCOUNT_RECORDER_LISTEN=127.0.0.1:0",
	"HEADCOUNT_RECORDER_ADMIN_LISTEN=127.0.0.1:0",
	"HEADCOUNT_WORKER_ADMIN_LISTEN=127.0.0.1:0",
	"HEADCOUNT_WORKER_INTERVAL=100ms",
}

func TestStandalone(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, run, env)
	p.Wait(t, "for trying Headcount only")
	play, viewers, leave := p.Wait(t, "/play"), p.Wait(t, "/viewers"), p.Wait(t, "/leave")

	const number = "[0-9]+"
	p.Wait(t, "pass complete")
	if code := curl(t, string(play)).Code; code != http.StatusOK {
		t.Errorf("%s answered %d, want 200", play, code)
	}
	if got := curl(t, string(viewers)).OK(t); !strings.HasPrefix(got, `{"video_id":"10001","viewers":1,`) {
		t.Errorf("%s answered %s, want 1 viewer", viewers, got)
	}
	pass := string(p.Wait(t, `"viewers": 1`))
	want := regexp.MustCompile(`pass complete\s+\{"videos": 1, "viewers": 1, "read": [01], "skipped": [01], "evicted": 0, "took": "` + number)
	if !want.MatchString(pass) {
		t.Errorf("a pass is logged as %q, want it to match %s", pass, want)
	}
	if code := curl(t, string(leave)).Code; code != http.StatusNoContent {
		t.Errorf("%s answered %d, want 204", leave, code)
	}
	p.Wait(t, `"viewers": 0`)

	began := time.Now()
	if err := p.Stop(t); err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s, want it at once", took)
	}
}

var (
	address = regexp.MustCompile(`http://\S+`)
	body    = regexp.MustCompile(`'(.*)'`)
)

// curl does what a printed command line would.
func curl(t *testing.T, line string) programtest.Answer {
	t.Helper()
	url := address.FindString(line)
	if data := body.FindStringSubmatch(line); data != nil {
		return programtest.Post(t, url, data[1])
	}
	return programtest.Get(t, url)
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, run, env, "--simulate", "20")
	p.Wait(t, "simulating")
	p.Wait(t, `"viewers": 1`) // the first comes within seconds
	began := time.Now()
	if err := p.Stop(t); err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s, want it at once", took)
	}
}

// The embedded Redis's keys expire only when somebody turns its clock.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, run, env)
	line := string(p.Wait(t, "starting"))
	found := regexp.MustCompile(`"redis_addrs": \["([^"]+)"\]`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("no address of the embedded Redis: %s", line)
	}
	rdb := redis.NewClient(&redis.Options{Addr: found[1]})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Set(t.Context(), "k", "v", 2*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	programtest.Eventually(t, "a key expires", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
}

func TestRefusedStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		env  string
		want string
	}{
		{name: "a real Redis", env: "HEADCOUNT_REDIS_ADDRS=" + redistest.Shared(t).Addr(), want: "redis.addrs"},
		{name: "a database", env: "HEADCOUNT_REDIS_DB=1", want: "takes no mode, tls, password or db"},
		{name: "less than no viewer", args: []string{"--simulate", "-1"}, want: "--simulate -1: takes 0 to 20000 viewers"},
		{name: "too many viewers", args: []string{"--simulate", "20001"}, want: "--simulate 20001: takes 0 to 20000 viewers"},
		{name: "no number of viewers", args: []string{"--simulate", "many"}, want: "simulate"},
		{
			name: "viewers without tokens", args: []string{"--simulate", "1"},
			env: "HEADCOUNT_AUTH_PLAY_KEYS=k:HS256:" + strings.Repeat("A", 44), want: "auth: the viewers of --simulate have no play tokens",
		},
		{name: "a bad key", env: "HEADCOUNT_AUTH_PLAY_KEYS=hunter2", want: "auth.play_keys: entry 1: not of the form"},
		{name: "an unknown flag", args: []string{"--simulat", "1"}, want: "--simulat: unknown flag"},
		{name: "an unknown variable", env: "HEADCOUNT_SIMULATE=5", want: "HEADCOUNT_SIMULATE: unknown variable"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := run(t.Context(), test.args, func() []string { return append(env[:len(env):len(env)], test.env) }, &out)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("run() = %v, want an error that says %q", err, test.want)
			}
			if strings.Contains(out.String(), "listening") {
				t.Errorf("it listened:\n%s", &out)
			}
		})
	}
}

func TestOnlyAnswers(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--version":      fmt.Sprintf("standalone %s\n", version),
		"--check-config": "config: ok\n",
		"--help":         "Usage: standalone [flags]",
	} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{arg}, func() []string { return nil }, &out); err != nil {
			t.Errorf("run(%s) = %v, want nil", arg, err)
		}
		if !strings.HasPrefix(out.String(), want) || strings.Contains(out.String(), "listening") {
			t.Errorf("run(%s) printed %q, want no more than what begins with %q", arg, &out, want)
		}
	}
}
