package redisclient_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

var (
	add    = redis.NewScript(`redis.call('SADD', KEYS[1], ARGV[1]) return redis.call('SCARD', KEYS[1])`)
	drop   = redis.NewScript(`return redis.call('DEL', KEYS[1])`)
	size   = redis.NewScript(`return redis.call('SCARD', KEYS[1])`)
	refuse = redis.NewScript(`return redis.error_reply('NO ' .. ARGV[1])`)
)

func call(s *redis.Script, key string, args ...any) *redisclient.ScriptCall {
	return &redisclient.ScriptCall{Script: s, Key: key, Args: args}
}

// replies are the answers to calls, or their errors, as text.
func replies(calls []*redisclient.ScriptCall) []string {
	var all []string
	for _, c := range calls {
		n, err := c.Reply.Int()
		if err == nil {
			all = append(all, strconv.Itoa(n))
		} else {
			all = append(all, err.Error())
		}
	}
	return all
}

func mixed() []*redisclient.ScriptCall {
	return []*redisclient.ScriptCall{
		call(add, "a", "1"),
		call(drop, "b"),
		call(refuse, "a", "first"),
		call(add, "string", "1"),
		call(add, "a", "2"),
		call(refuse, "b", "second"),
		call(size, "a"),
	}
}

func TestRunScripts(t *testing.T) {
	t.Parallel()
	want := []string{"1", "0", "NO first", "WRONGTYPE", "2", "NO second", "2"}
	states := map[string]func(*testing.T, *redis.Client){
		"no script known": func(*testing.T, *redis.Client) {},
		"one script known": func(t *testing.T, db *redis.Client) {
			t.Helper()
			if err := add.Load(t.Context(), db).Err(); err != nil {
				t.Fatalf("SCRIPT LOAD: %v", err)
			}
		},
		"all known, then flushed": func(t *testing.T, db *redis.Client) {
			t.Helper()
			redisclient.RunScripts(t.Context(), db, mixed())
			if err := db.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatalf("SCRIPT FLUSH: %v", err)
			}
			if err := db.Del(t.Context(), "a").Err(); err != nil {
				t.Fatalf("DEL: %v", err)
			}
		},
	}
	for name, prepare := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := redistest.Start(t).Client()
			if err := db.Set(t.Context(), "string", "v", 0).Err(); err != nil {
				t.Fatalf("SET: %v", err)
			}
			prepare(t, db)
			calls := mixed()
			redisclient.RunScripts(t.Context(), db, calls)
			got := replies(calls)
			for i, reply := range got {
				if strings.HasPrefix(reply, "WRONGTYPE") {
					got[i] = "WRONGTYPE"
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("replies (-want +got):\n%s", diff)
			}
		})
	}
}

// A call whose script is missing must not be overtaken by a later one on its key.
func TestRunScriptsKeepsOrder(t *testing.T) {
	t.Parallel()
	db := redistest.Start(t).Client()
	if err := add.Load(t.Context(), db).Err(); err != nil {
		t.Fatalf("SCRIPT LOAD: %v", err)
	}
	calls := []*redisclient.ScriptCall{call(drop, "a"), call(add, "a", "1"), call(add, "b", "1"), call(size, "a")}
	redisclient.RunScripts(t.Context(), db, calls)
	if diff := cmp.Diff([]string{"1", "1", "1"}, replies(calls[1:])); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	info, err := db.Info(t.Context(), "commandstats").Result()
	if err != nil || !strings.Contains(info, "cmdstat_eval:calls=3,") {
		t.Errorf("INFO commandstats = %q, %v, want the three calls on a repeated, and none else", info, err)
	}
	for _, key := range []string{"a", "b"} {
		if got, err := db.SMembers(t.Context(), key).Result(); len(got) != 1 || err != nil {
			t.Errorf("%s = %q, %v, want one member", key, got, err)
		}
	}
}

func TestRunScriptsOfNoCall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t)
	redisclient.RunScripts(t.Context(), s.Client(), nil) // asks nothing, so a dead server does not matter
	if got := s.Client().PoolStats().Misses; got > 1 {
		t.Errorf("connections wanted = %d, want none after the start's own", got)
	}
}

func TestRunScriptsReportsNetworkErrorInEveryReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t)
	calls := mixed()
	redisclient.RunScripts(t.Context(), s.Client(), calls)
	for i, c := range calls {
		if c.Reply.Err() == nil {
			t.Errorf("reply %d of a dead server: no error", i)
		}
	}
}

func TestRunScriptsOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()})
	var calls []*redisclient.ScriptCall
	var want []string
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} { // on all three masters
		want = append(want, "1", "NO "+key, "2")
		calls = append(calls, call(add, key, "1"), call(refuse, key, key), call(add, key, "2"))
	}
	redisclient.RunScripts(t.Context(), rdb, calls)
	if diff := cmp.Diff(want, replies(calls)); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
}
