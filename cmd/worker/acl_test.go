package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

const workerUser = "headcount-worker"

// patient is an environment in which a busy machine costs no lease, and a refresh comes within a test.
var patient = []string{"HEADCOUNT_LEASE_TTL=6s", "HEADCOUNT_REDIS_TIMEOUT=5s"}

// everything uses all that workers ask of Redis, whichever of its servers do answer: passes, the lease, standing by,
// --once, and Redis being full. It returns what they printed. Of a step that Redis refuses, the rest is not waited for.
func everything(t *testing.T, seed redis.UniversalClient, servers []*redis.Client, k keys.Keys, env []string) string {
	t.Helper()
	programtest.SeedHashes(t, seed, k)
	var out bytes.Buffer
	once := func() { _ = run(t.Context(), []string{"--once"}, func() []string { return env }, &out) } // it prints its errors or they are refusals
	each := func(do func(*redis.Client) error) {
		for _, s := range servers {
			if err := do(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	until := func(what string, done func() bool) {
		programtest.Eventually(t, what, func() bool { return done() || len(refusedBy(t, servers)) > 0 })
	}

	leader := programtest.Start(t, run, append(slices.Clone(env), "HEADCOUNT_WORKER_INTERVAL=100ms", "HEADCOUNT_LOG_LEVEL=debug"))
	leader.Wait(t, "when it is full") // Redis was asked what it does then, whatever it said
	until("a complete pass", func() bool { return strings.Contains(leader.Output(), passComplete) })
	for _, path := range []string{"/readyz", "/console/data", "/console/video?id=small"} {
		programtest.Get(t, leader.URL(t, "admin")+path)
	}
	once() // the lease is held
	each(func(s *redis.Client) error { return s.ConfigSet(t.Context(), "maxmemory", "1").Err() })
	once() // and nobody can tell
	each(func(s *redis.Client) error { return s.ConfigSet(t.Context(), "maxmemory", "0").Err() })
	until("a refresh", func() bool { return used(t, servers, "pexpire") })
	if err := leader.Stop(t); err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
	once() // the lease is free
	return leader.Output() + out.String()
}

// used reports whether any of the servers has carried out the command.
func used(t *testing.T, servers []*redis.Client, command string) bool {
	t.Helper()
	return slices.ContainsFunc(servers, func(s *redis.Client) bool {
		return strings.Contains(s.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":")
	})
}

func refusedBy(t *testing.T, servers []*redis.Client) (refused []string) {
	t.Helper()
	for _, s := range servers {
		refused = append(refused, programtest.Refused(t, s)...)
	}
	return refused
}

func wantEverything(t *testing.T, seed redis.UniversalClient, k keys.Keys, printed string) {
	t.Helper()
	for video, want := range map[string]string{"small": "1", "stale": "1", "large": "300"} {
		if got, err := seed.Get(t.Context(), k.Count(video)).Result(); got != want || err != nil {
			t.Errorf("count of %s = %q, %v, want %s", video, got, err, want)
		}
	}
	const notMade = `"msg":"no pass made: another worker holds the lease"`
	if got := strings.Count(printed, notMade); got != 2 {
		t.Errorf("said %d times that another holds the lease, want 2", got)
	}
	if got := strings.Count(printed, `"msg":"the lease is released"`); got != 2 {
		t.Errorf("said %d times that the lease is released, want 2", got)
	}
	for _, wrong := range []string{`"level":"error"`, "the lease was lost", "cannot ask for the lease", "NOPERM"} {
		if strings.Contains(printed, wrong) {
			t.Errorf("printed %s:\n%s", wrong, printed)
		}
	}
}

func (s store) envAs(u programtest.User) []string {
	return programtest.Env(s.Addr(), s.prefix, append(u.Env(), patient...)...)
}

func TestDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"video", "courses:live"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			s := store{redistest.Start(t), prefix, keys.New(prefix)}
			u, _ := programtest.DocumentedUser(t, workerUser, prefix)
			u.Create(t, s.Client())
			servers := []*redis.Client{s.Client()}
			wantEverything(t, s.Client(), s.keys, everything(t, s.Client(), servers, s.keys, s.envAs(u)))
			for _, refused := range refusedBy(t, servers) {
				t.Errorf("refused: %s", refused)
			}
			u.WantRefused(t, s.Client(), forbidden(s.keys)...)
		})
	}
}

// forbidden are commands that a worker must not be able to give.
func forbidden(k keys.Keys) []string {
	hash, lease, lastPass := k.Online("10001"), k.Lease(), k.LastPass()
	return append(programtest.ForbiddenToAll(),
		"DEL "+hash,
		"DEL "+lastPass,
		"PEXPIRE "+hash+" 1",
		"GETRANGE "+hash+" 0 1",
		"HSET "+lease+" x y",
		"EXPIRE "+lease+" 1",
		"MGET "+lease,
		"RENAME "+hash+" other",
		"EXPIRE "+k.Uniques("10001", "2026113014")+" 1",
		"HINCRBY "+k.Plays("10001")+" total 1",
		"DEL "+k.Top(),
	)
}

func TestDocumentedRightsAreAllNeeded(t *testing.T) {
	t.Parallel()
	u, _ := programtest.DocumentedUser(t, workerUser, "video")
	for missing, lesser := range u.Lesser(programtest.User{}) {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			s := store{redistest.Start(t), "video", keys.New("video")}
			lesser.Create(t, s.Client())
			everything(t, s.Client(), []*redis.Client{s.Client()}, s.keys, s.envAs(lesser))
			if len(programtest.Refused(t, s.Client())) == 0 {
				t.Errorf("nothing was refused: docs/security.md gives more than is needed")
			}
		})
	}
}

func TestDocumentedRightsOnACluster(t *testing.T) {
	t.Parallel()
	single, cluster := programtest.DocumentedUser(t, workerUser, "video")
	users := cluster.Lesser(single)
	users["nothing"] = cluster
	c := redistest.StartCluster(t, 3, 0)
	var servers []*redis.Client
	for _, m := range c.Masters() {
		servers = append(servers, m.Client())
	}
	for missing, u := range users {
		t.Run("without "+missing, func(t *testing.T) {
			testClusterRights(t, c, servers, u, missing)
		})
	}
}

func testClusterRights(t *testing.T, c *redistest.Cluster, servers []*redis.Client, u programtest.User, missing string) {
	t.Helper()
	for _, s := range servers {
		if err := s.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		u.Create(t, s)
	}
	k := keys.New("video")
	// A video on its way to another master: its count is redirected with ASK.
	slot := c.Slot(t, k.Count("small"))
	move := c.Migrate(t, slot, c.Other(c.Owner(t, slot)))
	env := programtest.Env(c.Addrs()[0], "video", slices.Concat(u.Env(), patient, []string{"HEADCOUNT_REDIS_MODE=cluster"})...)
	printed := everything(t, c.Client(), servers, k, env)
	move.MoveKeys(t)
	move.Finish(t)
	refused := refusedBy(t, servers)
	if missing == "nothing" {
		wantEverything(t, c.Client(), k, printed)
		if len(refused) > 0 {
			t.Errorf("refused: %q", refused)
		}
	} else if len(refused) == 0 {
		t.Errorf("nothing was refused: docs/security.md gives more than is needed")
	}
}
