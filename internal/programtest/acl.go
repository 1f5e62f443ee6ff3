package programtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
)

// User is a user of Redis: its name, and its rules as ACL SETUSER takes them, with parentheses as rules of their own.
type User struct {
	Name  string
	rules []string
}

const password = "a password of the tests"

// DocumentedUser returns a user with the rights that docs/security.md gives it for keys under prefix, and one with what
// it needs in addition on a cluster.
func DocumentedUser(t testing.TB, name, prefix string) (single, cluster User) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if rules, found := strings.CutPrefix(line, "ACL SETUSER "+name+" "); found {
			lines = append(lines, parseRules(rules, prefix))
		}
	}
	if len(lines) != 2 {
		t.Fatalf("docs/security.md has %d lines with ACL SETUSER %s, want 2: all rules, and those that a cluster adds", len(lines), name)
	}
	return User{name, lines[0]}, User{name, slices.Concat(lines[0], lines[1])}
}

func parseRules(text, prefix string) []string {
	rules := strings.Fields(strings.NewReplacer("(", "( ", ")", " )", "~video:", "~"+prefix+":").Replace(text))
	for i, rule := range rules {
		if strings.HasPrefix(rule, ">") {
			rules[i] = ">" + password
		}
	}
	return rules
}

// Env is the environment of a program that logs in as the user.
func (u User) Env() []string {
	return []string{"HEADCOUNT_REDIS_USERNAME=" + u.Name, "HEADCOUNT_REDIS_PASSWORD=" + password}
}

// Create makes the user, with its rules and no others, and empties the log of refusals.
func (u User) Create(t testing.TB, admin *redis.Client) {
	t.Helper()
	args := []any{"ACL", "SETUSER", u.Name}
	text := strings.NewReplacer("(\n", "(", "\n)", ")").Replace(strings.Join(u.rules, "\n"))
	for rule := range strings.SplitSeq(text, "\n") {
		args = append(args, rule)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("ACL SETUSER %s: %v", u.Name, err)
	}
	if err := admin.ACLLogReset(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// WithKind returns the user with the rights for another kind too, as docs/security.md says to give them.
func (u User) WithKind(first, kind string) User {
	var rules []string
	for _, rule := range u.rules {
		rules = append(rules, rule)
		other := strings.Replace(rule, "~"+first+":", "~"+kind+":", 1)
		if other != rule && !strings.HasSuffix(rule, ":stats:online") && !strings.HasSuffix(rule, ":worker:lease") {
			rules = append(rules, other)
		}
	}
	return User{u.Name, rules}
}

// Lesser returns the user without one of its rights, for each that goes beyond another user's first rules, by what is
// missing.
func (u User) Lesser(beyond User) map[string]User {
	users := make(map[string]User)
	for i, rule := range u.rules {
		if i >= len(beyond.rules) && (strings.HasPrefix(rule, "+") || strings.Contains(rule, "~")) {
			name := fmt.Sprintf("%d %s", i, rule)
			users[name] = User{u.Name, slices.Delete(slices.Clone(u.rules), i, i+1)}
		}
	}
	return users
}

// Refused tells what Redis has refused since the user was created.
func Refused(t testing.TB, admin *redis.Client) (refused []string) {
	t.Helper()
	const entries = 100
	log, err := admin.ACLLog(t.Context(), entries).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log {
		refused = append(refused, fmt.Sprintf("%s: %s %s (%s)", e.Username, e.Reason, e.Object, e.Context))
	}
	return refused
}

// SeedHashes writes hashes without a TTL, as another program may: small and stale hold one viewer and some who are gone,
// large holds 300. Beside them is a hash of plays with an hour that is kept no longer.
func SeedHashes(t testing.TB, seed redis.UniversalClient, k keys.Keys) {
	t.Helper()
	now := time.Now().Unix()
	long := now - 3600
	large := make([]any, 0, 600)
	for i := range 300 {
		large = append(large, fmt.Sprintf("u%d", i), now)
	}
	for video, viewers := range map[string][]any{
		"small": {"u1", now, "gone", long},
		"stale": {"u1", now, "a", long, "b", long, "c", long, "d", long, "e", long},
		"large": large,
	} {
		if err := seed.HSet(t.Context(), k.Online(video), viewers...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := seed.HSet(t.Context(), k.Plays("small"), "total", 1, "h:2020010100", 1).Err(); err != nil {
		t.Fatal(err)
	}
}

// WantRefused checks that Redis would refuse the user each of these commands, without running them.
func (u User) WantRefused(t testing.TB, admin *redis.Client, commands ...string) {
	t.Helper()
	for _, command := range commands {
		args := []any{"ACL", "DRYRUN", u.Name}
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		answer, err := admin.Do(t.Context(), args...).Text()
		if err != nil || !strings.Contains(answer, "has no permissions") {
			t.Errorf("%s may %s: %s, %v", u.Name, command, answer, err)
		}
	}
}

// ForbiddenToAll are commands that none of our users may give, whatever its keys.
func ForbiddenToAll() []string {
	return []string{
		"FLUSHALL", "FLUSHDB", "KEYS *", "RANDOMKEY", "CONFIG GET *", "CONFIG SET dir /tmp", "SHUTDOWN", "DEBUG SLEEP 0",
		"ACL LIST", "ACL SETUSER default on", "CLIENT LIST", "MONITOR", "SAVE", "REPLICAOF 127.0.0.1 1", "MODULE LIST",
		"SCRIPT FLUSH", "FUNCTION FLUSH", "SUBSCRIBE x", "PUBLISH x y", "CLUSTER RESET", "SLOWLOG GET", "SWAPDB 0 1",
		"GET other", "SET other x", "HGET other x", "HSET other x y", "EXPIRE other 1", "TTL other", "MGET other",
		"EVALSHA 0000000000000000000000000000000000000000 1 other", "HGETALL other",
	}
}
