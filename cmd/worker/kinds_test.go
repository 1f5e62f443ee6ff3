package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/cmd/internal/program"
	"headcount/cmd/recorder/serve"
	"headcount/internal/config"
	"headcount/internal/keys"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// kinds are two kinds of videos, a recorder that counts them, and their Redis.
type kinds struct {
	film, live string
	redis      redis.UniversalClient
	env        []string
	recorder   string // its URL
}

func startKinds(t *testing.T, rdb redis.UniversalClient, addr string, more ...string) kinds {
	t.Helper()
	k := kinds{film: redistest.Prefix(t), live: redistest.Prefix(t), redis: rdb}
	return k.start(t, addr, more...)
}

func (k kinds) start(t *testing.T, addr string, more ...string) kinds {
	t.Helper()
	k.env = programtest.Env(addr, "video", append([]string{"HEADCOUNT_KINDS=" + k.film + "," + k.live, "HEADCOUNT_LOOKUP_CACHE=0s"}, more...)...)
	k.recorder = programtest.Start(t, runRecorder, k.env).URL(t, "public")
	return k
}

func runRecorder(ctx context.Context, args []string, getenv func() []string, stdout io.Writer) error {
	p, err := program.Start(config.Options{Program: "recorder", Args: args, Environ: getenv(), Stdout: stdout, Checks: serve.Checks()})
	if err != nil {
		return err
	}
	return p.Run(ctx, serve.Service)
}

// once has a worker make one pass of each kind.
func (k kinds) once(t *testing.T) (printed string, err error) {
	t.Helper()
	var out strings.Builder
	err = run(t.Context(), []string{"--once"}, func() []string { return k.env }, &out)
	return out.String(), err
}

func (k kinds) play(t *testing.T, kind, video, viewer string) {
	t.Helper()
	programtest.Post(t, fmt.Sprintf("%s/v1/%ss/%s/play", k.recorder, kind, video), `{"viewer_id":"`+viewer+`"}`).OK(t)
}

// wantAnswer checks the beginning of an answer: what follows is a time.
func (k kinds) wantAnswer(t *testing.T, path, want string) {
	t.Helper()
	if got := programtest.Get(t, k.recorder+path).OK(t); !strings.HasPrefix(got, want) {
		t.Errorf("%s = %s, want %s", path, got, want)
	}
}

func (k kinds) exists(t *testing.T, key string) bool {
	t.Helper()
	n, err := k.redis.Exists(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

func TestKinds(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		s := redistest.Shared(t)
		startKinds(t, s.Client(), s.Addr()).testSideBySide(t)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.SharedCluster(t)
		startKinds(t, c.Client(), c.Addrs()[0], "HEADCOUNT_REDIS_MODE=cluster").testSideBySide(t)
	})
}

// The rights that are documented for several kinds suffice.
func TestDocumentedRightsOfKinds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	k := kinds{film: redistest.Prefix(t), live: redistest.Prefix(t), redis: s.Client()}
	recorder, _ := programtest.DocumentedUser(t, "headcount-recorder", k.film)
	worker, _ := programtest.DocumentedUser(t, workerUser, k.film)
	recorder, worker = recorder.WithKind(k.film, k.live), worker.WithKind(k.film, k.live)
	recorder.Create(t, s.Client())
	worker.Create(t, s.Client())
	k = k.start(t, s.Addr(), recorder.Env()...)
	k.env = append(k.env, worker.Env()...)
	k.testSideBySide(t)
	for _, refused := range programtest.Refused(t, s.Client()) {
		t.Errorf("refused: %s", refused)
	}
}

// Two kinds have a video of the same id, and each a viewer whom the other has not.
func (k kinds) testSideBySide(t *testing.T) {
	t.Helper()
	k.play(t, k.film, "10001", "u1")
	k.play(t, k.live, "10001", "u1")
	k.play(t, k.live, "10001", "u2")
	plays := fmt.Sprintf(`{"plays":[{"video_id":"10002","viewer_id":"u3"},{"video_id":"10003","viewer_id":"u1","kind":%q},`+
		`{"video_id":"10004","viewer_id":"u1","kind":"neither"}]}`, k.live)
	var recorded struct {
		Recorded int
		Errors   []struct{ Detail string }
	}
	if err := json.Unmarshal([]byte(programtest.Post(t, k.recorder+"/v1/plays", plays).OK(t)), &recorded); err != nil {
		t.Fatal(err)
	}
	if len(recorded.Errors) != 1 || recorded.Recorded != 2 || recorded.Errors[0].Detail != "kind: none of "+k.film+", "+k.live {
		t.Errorf("batch = %+v, want 2 recorded and that there is no such kind", recorded)
	}
	printed, err := k.once(t)
	if err != nil {
		t.Fatalf("run(--once) = %v and printed\n%s", err, printed)
	}
	if n := strings.Count(printed, passComplete); n != 2 {
		t.Errorf("%d passes were complete, want one of each kind:\n%s", n, printed)
	}
	for path, want := range map[string]string{
		"/v1/" + k.film + "s/10001/viewers":                        `{"video_id":"10001","viewers":1,"as_of":"2`,
		"/v1/" + k.live + "s/10001/viewers":                        `{"video_id":"10001","viewers":2,"as_of":"2`,
		"/v1/" + k.live + "s/10002/viewers":                        `{"video_id":"10002","viewers":0,"as_of":"2`,
		"/v1/viewers?video_id=10001&video_id=10002":                `{"counts":[{"video_id":"10001","viewers":1},{"video_id":"10002","viewers":1}],"as_of":"2`,
		"/v1/viewers?video_id=10001&video_id=10003&kind=" + k.live: `{"counts":[{"video_id":"10001","viewers":2},{"video_id":"10003","viewers":1}],"as_of":"2`,
		"/v1/top?limit=1&kind=" + k.live:                           `{"videos":[{"video_id":"10001","viewers":2}],"as_of":"2`,
		"/v1/top":                                                  `{"videos":[{"video_id":"10002","viewers":1},{"video_id":"10001","viewers":1}],"as_of":"2`,
		"/v1/uniques":                                              `{"uniques":2,`,
		"/v1/uniques?kind=" + k.live:                               `{"uniques":2,`,
		"/v1/" + k.live + "s/10001/uniques":                        `{"uniques":2,`,
		"/v1/plays":                                                `{"total":2,`,
		"/v1/plays?kind=" + k.live:                                 `{"total":3,`,
		"/v1/history?kind=" + k.live:                               `{"points":[{"at":"2`,
		"/v1/online":                                               `{"online":3,`, // u1 watches three videos of two kinds
	} {
		k.wantAnswer(t, path, want)
	}
	film, live := keys.New(k.film), keys.New(k.live)
	for key, want := range map[string]bool{
		film.Online("10003"): false, film.Count("10003"): false, film.Plays("10003"): false,
		live.Online("10002"): false, live.Count("10002"): false, live.Plays("10002"): false,
		film.OnlineUsers(): true, live.OnlineUsers(): false,
		film.LastPass(): true, live.LastPass(): true, live.Lease(): false,
	} {
		if got := k.exists(t, key); got != want {
			t.Errorf("key %s exists: %v, want %v", key, got, want)
		}
	}
}

// Somebody who is on the site without watching is online once, whatever is watched.
func TestOnlineAcrossKinds(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	k := startKinds(t, s.Client(), s.Addr())
	programtest.Post(t, k.recorder+"/v1/online", `{"viewer_id":"u1"}`).OK(t)
	k.play(t, k.live, "10001", "u1")
	k.play(t, k.live, "10001", "u2")
	k.wantAnswer(t, "/v1/online", `{"online":2,`)
	if err := s.Client().ZAdd(t.Context(), keys.New(k.film).OnlineUsers(), redis.Z{Score: 1, Member: "gone"}).Err(); err != nil {
		t.Fatal(err)
	}
	if printed, err := k.once(t); err != nil || strings.Contains(printed, "found nothing") {
		t.Fatalf("run(--once) = %v, want no warning of the kind that nobody watches:\n%s", err, printed)
	}
	left, err := s.Client().ZRange(t.Context(), keys.New(k.film).OnlineUsers(), 0, -1).Result()
	if diff := cmp.Diff([]string{"u1", "u2"}, left); diff != "" || err != nil {
		t.Errorf("online after a pass, %v (-want +got):\n%s", err, diff)
	}
}

// A kind whose pass fails keeps its as_of, and the next is counted all the same.
func TestKindThatFails(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	k := startKinds(t, s.Client(), s.Addr())
	k.play(t, k.film, "10001", "u1")
	k.play(t, k.live, "10001", "u1")
	if err := s.Client().Set(t.Context(), keys.New(k.film).LastPass(), "of another type", 0).Err(); err != nil {
		t.Fatal(err)
	}
	printed, err := k.once(t)
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("run(--once) = %v, want the first kind's error", err)
	}
	var kindsOf [2][]any
	for line := range strings.Lines(printed) {
		for i, message := range []string{`"msg":"pass partial`, passComplete} {
			if strings.Contains(line, message) {
				kindsOf[i] = append(kindsOf[i], programtest.Line(line).Field("kind"))
			}
		}
	}
	if diff := cmp.Diff([2][]any{{k.film}, {k.live}}, kindsOf); diff != "" {
		t.Errorf("kinds of partial and of complete passes (-want +got):\n%s", diff)
	}
	k.wantAnswer(t, "/v1/"+k.live+"s/10001/viewers", `{"video_id":"10001","viewers":1,"as_of":"2`)
}

// One worker counts all kinds under one lease, and says of each how it went.
func TestKindsInMetrics(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	k := startKinds(t, s.Client(), s.Addr())
	k.play(t, k.live, "10001", "u1")
	w := programtest.Start(t, run, append(k.env, "HEADCOUNT_WORKER_INTERVAL=10m"))
	w.Wait(t, `"kind":"`+k.film+`"`)
	w.Wait(t, `"kind":"`+k.live+`"`)
	admin := w.URL(t, "admin")
	for series, want := range map[string]float64{
		`headcount_passes_total{outcome="complete",video_kind="` + k.film + `"}`: 1,
		`headcount_passes_total{outcome="complete",video_kind="` + k.live + `"}`: 1,
		`headcount_pass_viewers{video_kind="` + k.film + `"}`:                    0,
		`headcount_pass_viewers{video_kind="` + k.live + `"}`:                    1,
		`headcount_lease_held`: 1,
	} {
		if got := programtest.Metric(t, admin, series); got != want {
			t.Errorf("%s = %v, want %v", series, got, want)
		}
	}
	if !k.exists(t, keys.New(k.film).Lease()) || k.exists(t, keys.New(k.live).Lease()) {
		t.Error("the lease is not the first kind's alone")
	}
	for kind, viewers := range map[string]string{"": `"now":0`, k.film: `"now":0`, k.live: `"now":1`} {
		got := programtest.Get(t, admin+"/console/data?kind="+kind).OK(t)
		if !strings.Contains(got, `"viewers":{`+viewers) || !strings.Contains(got, `"held":true`) ||
			!strings.Contains(got, `"kinds":["`+k.film+`","`+k.live+`"]`) {
			t.Errorf("console of kind %q = %s, want %s, the lease and the choice", kind, got, viewers)
		}
	}
	if got := programtest.Get(t, admin+"/console/data?kind=neither"); got.Code != 404 {
		t.Errorf("console of an unknown kind = %v, want 404", got)
	}
}
