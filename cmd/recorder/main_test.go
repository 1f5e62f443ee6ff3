package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
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

// service is a recorder that runs, and the Redis it works on.
type service struct {
	*programtest.Program
	redis       *redistest.Server
	keys        keys.Keys
	base, admin string
}

func start(t *testing.T, s *redistest.Server, env ...string) *service {
	t.Helper()
	prefix := redistest.Prefix(t)
	p := programtest.Start(t, run, programtest.Env(s.Addr(), prefix, env...))
	return &service{p, s, keys.New(prefix), p.URL(t, "public"), p.URL(t, "admin")}
}

func (s *service) video(id, what string) string { return s.base + "/v1/videos/" + id + "/" + what }

// playAnswer is the answer to a play.
type playAnswer struct {
	RecordedAt int64 `json:"recorded_at"`
	BeatAfter  int64 `json:"beat_after"`
}

func (s *service) play(t *testing.T, video, viewer string) playAnswer {
	t.Helper()
	var answer playAnswer
	body := programtest.Post(t, s.video(video, "play"), `{"viewer_id":"`+viewer+`"}`).OK(t)
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return answer
}

// wantTTL checks a key's TTL to be no more than most, and no more than a few
// seconds below least.
func (s *service) wantTTL(t *testing.T, key string, least, most time.Duration) {
	t.Helper()
	got, err := s.redis.Client().TTL(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if got > most || got < least-20*time.Second {
		t.Errorf("TTL of %s = %s, want from %s to %s", key, got, least, most)
	}
}

func (s *service) wantGet(t *testing.T, key, want string) {
	t.Helper()
	if got, err := s.redis.Client().Get(t.Context(), key).Result(); err != nil || got != want {
		t.Errorf("GET %s = %q, %v; want %q", key, got, err, want)
	}
}

func TestPlayAndLeave(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_LOOKUP_CACHE=0s")

	played := s.play(t, "10001", "u1")
	if now := time.Now().Unix(); played.RecordedAt < now-60 || played.RecordedAt > now+1 {
		t.Errorf("recorded_at = %d, want about %d", played.RecordedAt, now)
	}
	if played.BeatAfter != 150 {
		t.Errorf("beat_after = %d, want 150", played.BeatAfter)
	}
	want := map[string]string{"u1": strconv.FormatInt(played.RecordedAt, 10)}
	got, err := s.redis.Client().HGetAll(t.Context(), s.keys.Online("10001")).Result()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hash (-want +got):\n%s", diff)
	}
	s.wantTTL(t, s.keys.Online("10001"), 15*time.Minute, 15*time.Minute)
	s.wantGet(t, s.keys.Count("10001"), "1") // at once, not after a pass
	s.wantTTL(t, s.keys.Count("10001"), 12*time.Minute, 12*time.Minute+15*time.Second)
	lookup := `{"video_id":"10001","viewers":1,"as_of":null}` // no pass was ever made
	if got := programtest.Get(t, s.video("10001", "viewers")).OK(t); got != lookup {
		t.Errorf("lookup = %s, want %s", got, lookup)
	}

	leave := `{"viewer_id":"u1","recorded_at":` + want["u1"] + `}`
	if got := programtest.Post(t, s.video("10001", "leave"), leave); got.Code != http.StatusNoContent {
		t.Errorf("leave = %v, want 204", got)
	}
	if n, err := s.redis.Client().Exists(t.Context(), s.keys.Online("10001")).Result(); n != 0 || err != nil {
		t.Errorf("the hash is still there (%d, %v)", n, err)
	}
	lookup = `{"video_id":"10001","viewers":0,"as_of":null}`
	if got := programtest.Get(t, s.video("10001", "viewers")).OK(t); got != lookup {
		t.Errorf("lookup = %s, want %s", got, lookup)
	}
	s.wantGet(t, s.keys.Count("10001"), "0")
}

func TestFilesForBrowsers(t *testing.T) {
	t.Parallel()
	for demo, want := range map[string]int{"false": http.StatusNotFound, "true": http.StatusOK} {
		s := start(t, redistest.Shared(t), "HEADCOUNT_WEB_DEMO="+demo)
		if got := programtest.Get(t, s.base+"/"); got.Code != want {
			t.Errorf("web.demo %s: / answers %d, want %d", demo, got.Code, want)
		}
		if got := programtest.Get(t, s.base+"/headcount.js").OK(t); !strings.Contains(got, "viewer-count") {
			t.Errorf("web.demo %s: /headcount.js is not the script", demo)
		}
	}
}

func TestMissIsZeroWhereConfigured(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_LOOKUP_ON_MISS=zero")
	if err := s.redis.Client().HSet(t.Context(), s.keys.Online("10001"), "u1", time.Now().Unix()).Err(); err != nil {
		t.Fatal(err)
	}
	s.wantViewers(t, "10001", 0)
}

func TestLookupsAreCachedAsConfigured(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_LOOKUP_CACHE=1m")
	for _, count := range []string{"7", "8"} {
		if err := s.redis.Client().Set(t.Context(), s.keys.Count("10001"), count, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		s.wantViewers(t, "10001", 7)
	}
}

func TestRedisRestart(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Start(t), "HEADCOUNT_LOOKUP_CACHE=0s")
	readyz := func() string { return programtest.Get(t, s.admin+"/readyz").Body }
	s.play(t, "1", "u1")
	if got, want := readyz(), `{"status":"ready","components":{"redis":"ok"}}`; got != want {
		t.Errorf("readyz = %s, want %s", got, want)
	}

	s.redis.Kill(t)
	if got := programtest.Get(t, s.admin+"/readyz"); got.Code != http.StatusServiceUnavailable ||
		!strings.Contains(got.Body, `"status":"not ready","components":{"redis":"unreachable: `) {
		t.Errorf("readyz with Redis down = %v, want 503 that says that redis is unreachable", got)
	}
	if got := programtest.Get(t, s.admin+"/healthz"); got.Code != http.StatusOK {
		t.Errorf("healthz with Redis down = %v, want 200", got)
	}
	if got := programtest.Post(t, s.video("1", "play"), `{"viewer_id":"u1"}`); got.Code != http.StatusServiceUnavailable {
		t.Errorf("play with Redis down = %v, want 503", got)
	}

	s.redis.Restart(t)
	s.play(t, "1", "u2")
	if got, want := readyz(), `{"status":"ready","components":{"redis":"ok"}}`; got != want {
		t.Errorf("readyz after the restart = %s, want %s", got, want)
	}
	want := `{"video_id":"1","viewers":1,"as_of":null}`
	if got := programtest.Get(t, s.video("1", "viewers")).OK(t); got != want {
		t.Errorf("lookup after the restart = %s, want %s", got, want)
	}
}

// What is under way when the recorder is told to stop is still answered.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Start(t), "HEADCOUNT_REDIS_TIMEOUT=10s")
	s.redis.Pause(t)
	answer := make(chan programtest.Answer, 1)
	go func() { answer <- programtest.Post(t, s.video("1", "play"), `{"viewer_id":"u1"}`) }()
	programtest.Eventually(t, "a play is under way", func() bool {
		return programtest.Metric(t, s.admin, "headcount_http_requests_in_flight") == 1
	})

	ended := make(chan error, 1)
	go func() { ended <- s.Stop(t) }()
	programtest.Eventually(t, "it drains", func() bool {
		got := programtest.Get(t, s.admin+"/readyz")
		return got.Code == http.StatusServiceUnavailable && strings.Contains(got.Body, `"status":"draining"`)
	})
	s.redis.Resume(t)
	if got := <-answer; got.Code != http.StatusOK {
		t.Errorf("the play under way was answered %v, want 200", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
}

func TestRefusedStart(t *testing.T) {
	t.Parallel()
	redis := redistest.Shared(t).Addr()
	tests := []struct {
		name string
		args []string
		env  string
		want string
	}{
		{name: "unknown flag", args: []string{"--windw", "5m"}, want: "--windw: unknown flag"},
		{name: "unknown variable", env: "HEADCOUNT_WINDW=5m", want: "HEADCOUNT_WINDW: unknown variable"},
		{name: "unit missing", env: "HEADCOUNT_WINDOW=5", want: "HEADCOUNT_WINDOW"},
		{
			name: "unknown key", want: "windw",
			args: []string{"--config", programtest.NewConfigFile(t, "windw: 5m\n").Path()},
		},
		{name: "broken relation", env: "HEADCOUNT_KEY_TTL=11m", want: "key_ttl 11m is less than 1.5 x window 10m"},
		{
			name: "no such CA file", want: "redis.tls_ca_file: open /nowhere/ca.pem",
			args: []string{"--redis.tls", "--redis.tls_ca_file=/nowhere/ca.pem"},
		},
		{name: "no such file", args: []string{"--config", "/nowhere/config.yaml"}, want: "/nowhere/config.yaml"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			env := programtest.Env(redis, redistest.Prefix(t))
			if test.env != "" {
				env = append(env, test.env)
			}
			err := run(t.Context(), test.args, func() []string { return env }, &out)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("run() = %v, want an error that says %q", err, test.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q, want nothing: it must not have started", &out)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t))
	taken := strings.TrimPrefix(s.admin, "http://")
	env := programtest.Env(s.redis.Addr(), redistest.Prefix(t), "HEADCOUNT_RECORDER_ADMIN_LISTEN="+taken)

	err := run(t.Context(), nil, func() []string { return env }, io.Discard)
	if err == nil {
		t.Fatal("run() = nil, want an error")
	}
	for _, want := range []string{"admin listener", taken, "address already in use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("run() = %q, want it to say %q", err, want)
		}
	}
}

func TestOnlyAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct{ arg, want string }{
		{"--version", "recorder " + version + "\n"},
		{"--check-config", "config: ok\nprefix: \"video\"\nwindow: 10m\n"},
		{"--help", "Usage: recorder [flags]"},
	}
	for _, test := range tests {
		t.Run(test.arg, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := run(t.Context(), []string{test.arg}, func() []string { return nil }, &out); err != nil {
				t.Errorf("run(%s) = %v, want nil", test.arg, err)
			}
			if !strings.HasPrefix(out.String(), test.want) {
				t.Errorf("run(%s) printed %q, want it to begin with %q", test.arg, &out, test.want)
			}
			if strings.Contains(out.String(), "listening") {
				t.Errorf("run(%s) listened:\n%s", test.arg, &out)
			}
		})
	}
}
