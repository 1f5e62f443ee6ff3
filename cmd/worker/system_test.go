package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestProcesses runs the programs as their users do.
func TestProcesses(t *testing.T) {
	t.Parallel()
	b := binaries{programtest.Build(t, "recorder"), programtest.Build(t, "worker")}
	t.Run("play, pass, lookup, leave", func(t *testing.T) {
		t.Parallel()
		b.testEndToEnd(t, newStore(t, redistest.Shared(t)), nil, nil)
	})
	t.Run("the same by TLS with the least rights", func(t *testing.T) {
		t.Parallel()
		b.testSecured(t)
	})
	t.Run("kill -9", func(t *testing.T) {
		t.Parallel()
		b.testKilled(t)
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		b.testStopped(t)
	})
	t.Run("Redis is full", func(t *testing.T) {
		t.Parallel()
		b.testFullRedis(t)
	})
	t.Run("rolling restart", func(t *testing.T) {
		t.Parallel()
		b.testRollingRestart(t)
	})
	t.Run("no viewer id is told", func(t *testing.T) {
		t.Parallel()
		b.testViewersAreSecret(t)
	})
}

// binaries are the paths of the programs.
type binaries struct{ recorder, worker string }

func (b binaries) startRecorder(t *testing.T, s store, env ...string) *programtest.Program {
	t.Helper()
	return programtest.Exec(t, b.recorder, programtest.Env(s.Addr(), s.prefix, append([]string{"HEADCOUNT_LOOKUP_CACHE=0s"}, env...)...))
}

func (b binaries) startWorker(t *testing.T, s store, env ...string) *programtest.Program {
	t.Helper()
	return programtest.Exec(t, b.worker, programtest.Env(s.Addr(), s.prefix, append([]string{"HEADCOUNT_WORKER_INTERVAL=100ms"}, env...)...))
}

func (b binaries) testEndToEnd(t *testing.T, s store, recorderEnv, workerEnv []string) {
	t.Helper()
	base := b.startRecorder(t, s, recorderEnv...).URL(t, "public") + "/v1/videos/10001/"
	for _, viewer := range []string{"u1", "u2", "u1"} {
		programtest.Post(t, base+"play", `{"viewer_id":"`+viewer+`"}`).OK(t)
	}
	w := b.startWorker(t, s, workerEnv...)
	if got := w.Wait(t, passComplete).Field("viewers"); got != 2.0 {
		t.Errorf("the pass counted %v viewers, want 2", got)
	}
	var got struct {
		Viewers int64
		AsOf    time.Time `json:"as_of"`
	}
	if err := json.Unmarshal([]byte(programtest.Get(t, base+"viewers").OK(t)), &got); err != nil {
		t.Fatal(err)
	}
	if age := time.Since(got.AsOf).Abs(); got.Viewers != 2 || age > time.Minute {
		t.Errorf("lookup = %d as of %s, want 2 as of the last pass", got.Viewers, got.AsOf)
	}
	for _, viewer := range []string{"u1", "u2", "u2", "nobody"} {
		if got := programtest.Post(t, base+"leave", `{"viewer_id":"`+viewer+`"}`); got.Code != http.StatusNoContent {
			t.Errorf("leave = %v, want 204", got)
		}
	}
	s.wantCount(t, "10001", "0")
	w.Wait(t, passComplete) // may have begun before
	w.Wait(t, passComplete)
	if got := programtest.Get(t, base+"viewers").OK(t); !strings.Contains(got, `"viewers":0,`) {
		t.Errorf("lookup after all left = %s, want 0", got)
	}
}

func (b binaries) testSecured(t *testing.T) {
	certs := redistest.NewCerts(t)
	s := newStore(t, redistest.Start(t, certs.ServerArgs()...))
	byTLS := []string{
		"HEADCOUNT_REDIS_TLS=true",
		"HEADCOUNT_REDIS_TLS_CA_FILE=" + certs.CAFile,
		"HEADCOUNT_REDIS_TLS_CERT_FILE=" + certs.CertFile,
		"HEADCOUNT_REDIS_TLS_KEY_FILE=" + certs.KeyFile,
	}
	recorder, _ := programtest.DocumentedUser(t, "headcount-recorder", s.prefix)
	worker, _ := programtest.DocumentedUser(t, workerUser, s.prefix)
	recorder.Create(t, s.Client())
	worker.Create(t, s.Client())
	b.testEndToEnd(t, s, append(recorder.Env(), byTLS...), append(worker.Env(), byTLS...))
	for _, refused := range programtest.Refused(t, s.Client()) {
		t.Errorf("refused: %s", refused)
	}
}

// Every process is killed while viewers are online, and started again after the
// window: nobody is left behind.
func (b binaries) testKilled(t *testing.T) {
	s := newStore(t, redistest.Shared(t))
	recorder := b.startRecorder(t, s)
	for i := range 3 {
		body := fmt.Sprintf(`{"viewer_id":"u%d"}`, i)
		programtest.Post(t, recorder.URL(t, "public")+"/v1/videos/10001/play", body).OK(t)
	}
	worker := b.startWorker(t, s, "HEADCOUNT_LEASE_TTL=2s")
	worker.Wait(t, passComplete)
	s.wantCount(t, "10001", "3")
	recorder.Kill(t)
	worker.Kill(t)
	if !s.exists(t, s.keys.Online("10001")) {
		t.Fatal("the hash is gone already")
	}

	for i := range 3 {
		s.seed(t, "10001", fmt.Sprintf("u%d", i), 10*time.Minute+2*time.Second)
	}
	next := b.startWorker(t, s)
	next.Wait(t, standingBy) // until the killed holder's lease expires
	if got := next.Wait(t, passComplete).Field("evicted"); got != 3.0 {
		t.Errorf("the pass evicted %v, want 3", got)
	}
	s.wantCount(t, "10001", "0")
	if s.exists(t, s.keys.Online("10001")) {
		t.Error("the hash is still there")
	}
}

func (b binaries) testStopped(t *testing.T) {
	s := newStore(t, redistest.Shared(t))
	recorder, worker := b.startRecorder(t, s), b.startWorker(t, s)
	recorder.URL(t, "public")
	worker.Wait(t, passComplete)
	standby := b.startWorker(t, s)
	standby.Wait(t, standingBy)

	began := time.Now()
	for name, p := range map[string]*programtest.Program{"recorder": recorder, "worker": worker} {
		if err := p.Stop(t); err != nil {
			t.Errorf("the %s ended with %v, want exit code 0", name, err)
		}
		if line := p.Wait(t, `"msg":"stopped"`); line.Field("level") != "info" {
			t.Errorf("the %s's last line: %s", name, line)
		}
	}
	standby.Wait(t, leading)
	// Both end at once and the standby asks every half a second; the rest is
	// for a busy machine.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping and taking over took %s, want about a second", took)
	}
}

// testViewersAreSecret looks for a viewer's id in all that operators get to see.
func (b binaries) testViewersAreSecret(t *testing.T) {
	const secret = "VIEWER-SECRET-123"
	s := newStore(t, redistest.Start(t))
	recorder := b.startRecorder(t, s, "HEADCOUNT_LOG_LEVEL=debug")
	s.seed(t, "10001", secret, 0)
	s.seed(t, "10001", secret+"-stale", time.Hour)
	s.seed(t, "10001", secret+"-wrong", -time.Hour)
	worker := b.startWorker(t, s, "HEADCOUNT_LOG_LEVEL=debug")
	worker.Wait(t, passComplete)

	var answers strings.Builder
	tell := func() {
		for _, what := range []string{"play", "leave", "viewers", secret} {
			for _, body := range []string{
				`{"viewer_id":"` + secret + `"}`,
				`{"viewer_id":"` + secret,
				`{"viewer_id":"` + secret + `\u0007"}`,
				`{"viewer_id":"` + strings.Repeat(secret, 30) + `"}`,
				`{"viewer_id":["` + secret + `"]}`,
				`{"viewer_id":"` + secret + `","recorded_at":"` + secret + `"}`,
				`{"` + secret + `":1}`,
				strings.Repeat(secret, 1000),
			} {
				fmt.Fprintln(&answers, programtest.Post(t, recorder.URL(t, "public")+"/v1/videos/10001/"+what, body))
			}
		}
	}
	tell()
	s.Kill(t)
	tell()
	worker.Wait(t, `"msg":"pass partial: what failed keeps its earlier count"`)

	for name, p := range map[string]*programtest.Program{"recorder": recorder, "worker": worker} {
		fmt.Fprintln(&answers, programtest.Get(t, p.URL(t, "admin")+"/metrics"))
		fmt.Fprintln(&answers, programtest.Get(t, p.URL(t, "admin")+"/readyz"))
		if err := p.Stop(t); err != nil {
			t.Errorf("the %s ended with %v", name, err)
		}
		if strings.Contains(p.Output(), secret) {
			t.Errorf("the viewer's id is in the log of the %s:\n%s", name, p.Output())
		}
	}
	if strings.Contains(answers.String(), secret) {
		t.Errorf("the viewer's id is in an answer:\n%s", &answers)
	}
}
