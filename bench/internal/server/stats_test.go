package server

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestInfoNumber(t *testing.T) {
	t.Parallel()
	const info = "# CPU\r\nused_cpu_user:9.5\r\nused_cpu_user_main_thread:1.25\r\n"
	if got, err := infoNumber(info, "used_cpu_user_main_thread"); got != 1.25 || err != nil {
		t.Errorf("got %v, %v, want 1.25", got, err)
	}
	if _, err := infoNumber(info, "used_cpu"); err == nil {
		t.Error("a field that is only the beginning of others: no error")
	}
}

func TestLongestOf(t *testing.T) {
	t.Parallel()
	log := []redis.SlowLog{
		{Duration: 2 * time.Millisecond, Args: []string{"HSCAN", "k", "0"}},
		{Duration: 3 * time.Millisecond, Args: []string{"hscan", "k", "1"}},
		{Duration: 9 * time.Millisecond, Args: []string{"INFO", "cpu"}},
		{Duration: 9 * time.Millisecond, Args: []string{"slowlog", "reset"}},
	}
	if got := longestOf(log); got != 3*time.Millisecond {
		t.Errorf("got %v, want 3ms: the longest that is not the bench's own", got)
	}
}

func TestMeasuresOfRealServer(t *testing.T) {
	t.Parallel()
	srv := start(t)
	end, err := srv.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const busy = "local n = 0 for i = 1, 20000000 do n = n + i end return n" // some 0.1 s
	if err := srv.Admin.Eval(t.Context(), busy, nil).Err(); err != nil {
		t.Fatal(err)
	}
	got, err := end()
	if err != nil {
		t.Fatal(err)
	}
	const least = 5 * time.Millisecond
	if got.CPU < least || got.Longest < least {
		t.Errorf("got %+v, want more than %v of each", got, least)
	}
	if err := srv.Settle(t.Context()); err != nil {
		t.Errorf("Settle: %v", err)
	}
}

func TestClockMovesOnlyWhenTold(t *testing.T) {
	t.Parallel()
	clock, err := NewClock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = clock.Close() })
	srv := start(t, clock.Env()...)
	if err := srv.Admin.Set(t.Context(), "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	began := clock.Now()
	for _, step := range []time.Duration{0, 40 * time.Second} {
		if err := clock.Advance(step); err != nil {
			t.Fatal(err)
		}
		want := time.Unix(began, 0).Add(step)
		if got, err := srv.Admin.Time(t.Context()).Result(); !got.Equal(want) || err != nil {
			t.Errorf("TIME = %v, %v, want %v", got, err, want)
		}
	}
	if got, err := srv.Admin.TTL(t.Context(), "k").Result(); got != 20*time.Second || err != nil {
		t.Errorf("TTL = %v, %v, want 20s", got, err)
	}
}

func start(t *testing.T, env ...string) *Server {
	t.Helper()
	srv, err := Start(t.Context(), env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return srv
}
