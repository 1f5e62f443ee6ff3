package redisclient_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// patience is for commands that are to succeed however slow the machine is.
const patience = 30 * time.Second

// connect returns a client that waits with patience unless the test says otherwise.
func connect(t *testing.T, o redisclient.Options) redis.UniversalClient {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	rdb, err := redisclient.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func single(s *redistest.Server) redisclient.Options {
	return redisclient.Options{Mode: redisclient.Single, Addrs: []string{s.Addr()}}
}

func setAndGet(t *testing.T, rdb redis.UniversalClient, key string) {
	t.Helper()
	if err := rdb.Set(t.Context(), key, "v", 0).Err(); err != nil {
		t.Errorf("SET: %v", err)
	}
	if got, err := rdb.Get(t.Context(), key).Result(); got != "v" || err != nil {
		t.Errorf("GET = %q, %v, want v", got, err)
	}
}

func TestSingle(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "secret")
	o := single(s)
	o.Password, o.DB = "secret", 3
	setAndGet(t, connect(t, o), "k")
	if keyspace, err := s.Client().Info(t.Context(), "keyspace").Result(); !strings.Contains(keyspace, "db3:keys=1") || err != nil {
		t.Errorf("INFO keyspace = %q, %v, want one key in database 3", keyspace, err)
	}
	o.Password = "wrong"
	if err := connect(t, o).Ping(t.Context()).Err(); !redis.HasErrorPrefix(err, "WRONGPASS") {
		t.Errorf("PING with a wrong password: %v, want WRONGPASS", err)
	}
}

func TestUsername(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	if err := s.Client().Do(t.Context(), "ACL", "SETUSER", "counter", "on", ">secret", "~*", "+@all").Err(); err != nil {
		t.Fatalf("ACL SETUSER: %v", err)
	}
	o := single(s)
	o.Username, o.Password = "counter", "secret"
	if got, err := connect(t, o).Do(t.Context(), "ACL", "WHOAMI").Text(); got != "counter" || err != nil {
		t.Errorf("ACL WHOAMI = %q, %v, want counter", got, err)
	}
}

// A new connection must send nothing that an older server counts as an error.
func TestConnectingLeavesNoErrorsBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	setAndGet(t, connect(t, single(s)), "k")
	if got, err := s.Client().Info(t.Context(), "errorstats").Result(); strings.Contains(got, "errorstat_") || err != nil {
		t.Errorf("INFO errorstats = %q, %v, want none", got, err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Sentinel, Addrs: s.Addrs(), MasterName: s.MasterName, Timeout: time.Second})
	setAndGet(t, rdb, "before")
	if got, err := s.Master().Client().Get(t.Context(), "before").Result(); got != "v" || err != nil {
		t.Errorf("GET on the master = %q, %v, want v", got, err)
	}
	s.Master().Kill(t)
	eventually(t, "a write after the failover", func() error { return rdb.Set(t.Context(), "after", "v", 0).Err() })
	if got, err := s.Replica().Client().Get(t.Context(), "after").Result(); got != "v" || err != nil {
		t.Errorf("GET on the promoted replica = %q, %v, want v", got, err)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()[:1]}) // it finds the others
	for i := range 30 {
		setAndGet(t, rdb, fmt.Sprintf("k%d", i))
	}
	for _, s := range c.Masters() {
		if n, err := s.Client().DBSize(t.Context()).Result(); n == 0 || err != nil {
			t.Errorf("DBSIZE of master %s = %d, %v, want some of the 30 keys", s.Addr(), n, err)
		}
	}
}

func TestTLSIsInForce(t *testing.T) {
	t.Parallel()
	o := single(redistest.Shared(t)) // which speaks no TLS
	o.TLS, o.Timeout = encrypted(t, redisclient.TLSFiles{}), time.Second
	if err := connect(t, o).Ping(t.Context()).Err(); err == nil {
		t.Errorf("PING by TLS to a server that speaks none: no error")
	}
}

func TestUnknownMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "Single", "replica"} {
		rdb, err := redisclient.New(redisclient.Options{Mode: mode, Addrs: []string{"127.0.0.1:1"}})
		want := fmt.Sprintf("redis.mode %q is none of single, sentinel, cluster", mode)
		if rdb != nil || err == nil || err.Error() != want {
			t.Errorf("New with mode %q = %v, %v, want the error %s", mode, rdb, err, want)
		}
	}
}

func TestNewDoesNotConnect(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t)
	rdb := connect(t, single(s))
	s.Restart(t)
	setAndGet(t, rdb, "k")
}

func TestStalledServerFailsInTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := single(s)
	o.Timeout = 100 * time.Millisecond
	rdb := connect(t, o)
	eventually(t, "the first PING", func() error { return rdb.Ping(t.Context()).Err() })
	s.Pause(t)
	start := time.Now()
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Errorf("PING of a paused server: no error")
	}
	// The time-out, and once more for each of two repeats; the rest is for a slow machine.
	if took := time.Since(start); took < o.Timeout || took > 20*o.Timeout {
		t.Errorf("PING took %v to fail, want about %v", took, 3*o.Timeout)
	}
	s.Resume(t)
	eventually(t, "a PING after the stall", func() error { return rdb.Ping(t.Context()).Err() })
}

func TestCallersDeadlineIsHonoured(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := connect(t, single(s))
	setAndGet(t, rdb, "k")
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := rdb.Ping(ctx).Err(); err == nil {
		t.Errorf("PING of a paused server: no error")
	}
	if took := time.Since(start); took > patience/3 {
		t.Errorf("PING took %v, its deadline was 50 ms", took)
	}
}

func TestDeadServerIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := connect(t, single(s))
	setAndGet(t, rdb, "k")
	s.Kill(t)
	for range 2 { // over the pooled connection, then over none
		start := time.Now()
		if err := rdb.Ping(t.Context()).Err(); err == nil {
			t.Errorf("PING of a dead server: no error")
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("PING took %v to fail, want far less than a second", took)
		}
	}
	s.Restart(t)
	setAndGet(t, rdb, "k")
}

// eventually polls until ok returns no error.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-limit.C:
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-tick.C:
		}
	}
}
