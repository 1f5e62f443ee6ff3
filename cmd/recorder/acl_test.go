package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

const recorderUser = "headcount-recorder"

// everything uses all that a recorder asks of Redis, which must not know its scripts yet, and returns what was answered
// otherwise than it should.
func everything(t *testing.T, seed redis.UniversalClient, prefix string, env []string) (wrong []string) {
	t.Helper()
	k := keys.New(prefix)
	programtest.SeedHashes(t, seed, k)
	if err := seed.HSet(t.Context(), k.LastPass(), "finished_at", time.Now().Unix()).Err(); err != nil {
		t.Fatal(err)
	}
	p := programtest.Start(t, run, append(env, "HEADCOUNT_LOG_LEVEL=debug"))
	p.Wait(t, "when it is full") // Redis was asked what it does then, whatever it said
	base, admin := p.URL(t, "public"), p.URL(t, "admin")
	check := func(what string, got programtest.Answer, code int, body string) {
		if got.Code != code || !strings.Contains(got.Body, body) {
			wrong = append(wrong, fmt.Sprintf("%s = %v, want %d %s", what, got, code, body))
		}
	}
	check("ready", programtest.Get(t, admin+"/readyz"), http.StatusOK, `"redis":"ok"`)
	check("play", programtest.Post(t, base+"/v1/videos/new/play", `{"viewer_id":"u1"}`), http.StatusOK, "recorded_at")
	check("lookup", programtest.Get(t, base+"/v1/videos/new/viewers"), http.StatusOK, `"viewers":1`)
	check("leave", programtest.Post(t, base+"/v1/videos/new/leave", `{"viewer_id":"u1"}`), http.StatusNoContent, "")
	check("leave of nobody", programtest.Post(t, base+"/v1/videos/none/leave", `{"viewer_id":"u1"}`), http.StatusNoContent, "")
	plays := `{"plays":[{"video_id":"a","viewer_id":"u1"},{"video_id":"b","viewer_id":"u1"}]}`
	check("plays", programtest.Post(t, base+"/v1/plays", plays), http.StatusOK, `"recorded":2`)
	check("count of a small hash", programtest.Get(t, base+"/v1/videos/small/viewers"), http.StatusOK, `"viewers":1`)
	check("count with many stale", programtest.Get(t, base+"/v1/videos/stale/viewers"), http.StatusOK, `"viewers":1`)
	check("count of a large hash", programtest.Get(t, base+"/v1/videos/large/viewers"), http.StatusOK, `"viewers":300`)
	check("lookups", programtest.Get(t, base+"/v1/viewers?video_id=a&video_id=b&video_id=none"), http.StatusOK,
		`{"video_id":"a","viewers":1},{"video_id":"b","viewers":1},{"video_id":"none","viewers":0}`)
	check("heartbeat", programtest.Post(t, base+"/v1/online", `{"viewer_id":"u2"}`), http.StatusOK, "recorded_at")
	check("online", programtest.Get(t, base+"/v1/online"), http.StatusOK, `"online":2`)
	check("leave of the site", programtest.Post(t, base+"/v1/online/leave", `{"viewer_id":"u2"}`), http.StatusNoContent, "")
	for path, want := range map[string]string{
		"/v1/uniques": `"uniques":1`, "/v1/videos/a/uniques": `"uniques":1`, "/v1/plays": `"total":3`, "/v1/videos/a/plays": `"total":1`,
		"/v1/top": `"videos":[]`, "/v1/history": `"points":[]`, "/v1/videos/a/stats": `"plays":1`,
	} {
		check(path, programtest.Get(t, base+path), http.StatusOK, want)
	}
	for _, path := range []string{"/console/data", "/console/video?id=a"} {
		got := programtest.Get(t, admin+path)
		check(path, got, http.StatusOK, `"uniques":{"value":`)
		if strings.Contains(got.Body, `"failed":`) {
			wrong = append(wrong, fmt.Sprintf("%s = %v, want nothing that failed", path, got))
		}
	}
	return wrong
}

func recorderEnv(addr, prefix string, u programtest.User, more ...string) []string {
	return programtest.Env(addr, prefix, slices.Concat(u.Env(), []string{"HEADCOUNT_LOOKUP_CACHE=0s", "HEADCOUNT_REDIS_TIMEOUT=5s"}, more)...)
}

func TestDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"video", "courses:live"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			u, _ := programtest.DocumentedUser(t, recorderUser, prefix)
			u.Create(t, s.Client())
			for _, wrong := range everything(t, s.Client(), prefix, recorderEnv(s.Addr(), prefix, u)) {
				t.Error(wrong)
			}
			for _, refused := range programtest.Refused(t, s.Client()) {
				t.Errorf("refused: %s", refused)
			}
			u.WantRefused(t, s.Client(), forbidden(keys.New(prefix))...)
		})
	}
}

// forbidden are commands that a recorder must not be able to give.
func forbidden(k keys.Keys) []string {
	hash, lease, lastPass := k.Online("10001"), k.Lease(), k.LastPass()
	return append(programtest.ForbiddenToAll(),
		"DEL "+hash,
		"SCAN 0",
		"GET "+lease,
		"SET "+lease+" x",
		"EXPIRE "+lease+" 1",
		"DEL "+lease,
		"EVALSHA 0000000000000000000000000000000000000000 1 "+lease,
		"HSET "+lastPass+" finished_at 1",
		"EXPIRE "+lastPass+" 1",
		"HDEL "+lastPass+" finished_at",
		"ZADD "+k.Top()+" 1 x",
		"HSET "+k.Peak("10001")+" ever 9",
		"EXPIRE "+k.History("")+" 1",
		"DEL "+k.OnlineUsers(),
	)
}

func TestDocumentedRightsAreAllNeeded(t *testing.T) {
	t.Parallel()
	u, _ := programtest.DocumentedUser(t, recorderUser, "video")
	for missing, lesser := range u.Lesser(programtest.User{}) {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			lesser.Create(t, s.Client())
			everything(t, s.Client(), "video", recorderEnv(s.Addr(), "video", lesser))
			if len(programtest.Refused(t, s.Client())) == 0 {
				t.Errorf("without %s nothing was refused: docs/security.md gives more than is needed", missing)
			}
		})
	}
}

func TestDocumentedRightsBehindSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	u, _ := programtest.DocumentedUser(t, recorderUser, "video")
	u.Create(t, s.Master().Client())
	env := recorderEnv(strings.Join(s.Addrs(), ","), "video", u,
		"HEADCOUNT_REDIS_MODE=sentinel", "HEADCOUNT_REDIS_MASTER_NAME="+s.MasterName)
	for _, wrong := range everything(t, s.Master().Client(), "video", env) {
		t.Error(wrong)
	}
	for _, refused := range programtest.Refused(t, s.Master().Client()) {
		t.Errorf("refused: %s", refused)
	}
}

func TestDocumentedRightsOnACluster(t *testing.T) {
	t.Parallel()
	single, cluster := programtest.DocumentedUser(t, recorderUser, "video")
	users := cluster.Lesser(single)
	users["nothing"] = cluster
	c := redistest.StartCluster(t, 3, 0)
	for missing, u := range users {
		t.Run("without "+missing, func(t *testing.T) {
			onEveryMaster(c, func(m *redis.Client) {
				u.Create(t, m)
				m.FlushAll(t.Context())
				m.ScriptFlush(t.Context())
			})
			// A play of a video on its way to another master is redirected with ASK.
			slot := c.Slot(t, keys.New("video").Online("new"))
			move := c.Migrate(t, slot, c.Other(c.Owner(t, slot)))
			env := recorderEnv(c.Addrs()[0], "video", u, "HEADCOUNT_REDIS_MODE=cluster")
			wrong := everything(t, c.Client(), "video", env)
			move.MoveKeys(t)
			move.Finish(t)
			var refused []string
			onEveryMaster(c, func(m *redis.Client) {
				refused = append(refused, programtest.Refused(t, m)...)
			})
			if missing == "nothing" && len(wrong)+len(refused) > 0 {
				t.Errorf("wrong: %q, refused: %q", wrong, refused)
			}
			if missing != "nothing" && len(refused) == 0 {
				t.Errorf("nothing was refused: docs/security.md gives more than is needed")
			}
		})
	}
}

func onEveryMaster(c *redistest.Cluster, do func(m *redis.Client)) {
	for _, s := range c.Masters() {
		do(s.Client())
	}
}
