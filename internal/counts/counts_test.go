package counts

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const ttl = 12 * time.Minute

// run queues one write of a count in a pipeline and sends it.
func run(t *testing.T, queue func(redis.Pipeliner) *redis.StatusCmd) error {
	t.Helper()
	pipe := redistest.Shared(t).Client().Pipeline()
	cmd := queue(pipe)
	_, _ = pipe.Exec(t.Context()) // the command has its own error
	return Err(cmd)
}

func newWriter(t *testing.T) (w Writer, db *redis.Client, key string) {
	t.Helper()
	prefix := redistest.Prefix(t)
	return Writer{Keys: keys.New(prefix), TTL: ttl}, redistest.Shared(t).Client(), prefix + ":online:count:10001"
}

func set(t *testing.T, w Writer, viewers int64) error {
	t.Helper()
	return run(t, func(p redis.Pipeliner) *redis.StatusCmd { return w.Set(t.Context(), p, "10001", viewers) })
}

func replace(t *testing.T, w Writer, viewers int64) error {
	t.Helper()
	return run(t, func(p redis.Pipeliner) *redis.StatusCmd { return w.Replace(t.Context(), p, "10001", viewers) })
}

func wantCount(t *testing.T, db *redis.Client, key, want string) {
	t.Helper()
	if got, err := db.Get(t.Context(), key).Result(); got != want || err != nil {
		t.Errorf("count = %q, %v, want %q", got, err, want)
	}
	if got, err := db.TTL(t.Context(), key).Result(); got < ttl-time.Minute || got > ttl*102/100 || err != nil {
		t.Errorf("TTL = %v, %v, want %v and up to 2 %% more", got, err, ttl)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	w, db, key := newWriter(t)
	for _, viewers := range []int64{23, 0, 1_000_000_000_000} {
		if err := set(t, w, viewers); err != nil {
			t.Errorf("Set(%d): %v", viewers, err)
		}
		wantCount(t, db, key, map[int64]string{23: "23", 0: "0", 1_000_000_000_000: "1000000000000"}[viewers])
	}
}

func TestSetOverwritesAnyString(t *testing.T) {
	t.Parallel()
	w, db, key := newWriter(t)
	if err := db.Set(t.Context(), key, "junk, and without a TTL", 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := set(t, w, 23); err != nil {
		t.Errorf("Set: %v", err)
	}
	wantCount(t, db, key, "23")
}

func TestReplace(t *testing.T) {
	t.Parallel()
	w, db, key := newWriter(t)
	if err := replace(t, w, 5); err != nil {
		t.Errorf("Replace of no count: %v", err)
	}
	if n, err := db.Exists(t.Context(), key).Result(); n != 0 || err != nil {
		t.Errorf("EXISTS after Replace of no count = %d, %v, want 0", n, err)
	}
	if err := set(t, w, 23); err != nil {
		t.Errorf("Set: %v", err)
	}
	if err := replace(t, w, 0); err != nil {
		t.Errorf("Replace: %v", err)
	}
	wantCount(t, db, key, "0")
}

func TestAnotherTypeIsLeftAlone(t *testing.T) {
	t.Parallel()
	writes := map[string]func(*testing.T, Writer, int64) error{"Set": set, "Replace": replace}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, db, key := newWriter(t)
			if err := db.RPush(t.Context(), key, "foreign").Err(); err != nil {
				t.Fatalf("RPUSH: %v", err)
			}
			if err := write(t, w, 23); !redis.HasErrorPrefix(err, "WRONGTYPE") {
				t.Errorf("%s on a list: %v, want WRONGTYPE", name, err)
			}
			got, err := db.LRange(t.Context(), key, 0, -1).Result()
			if err != nil || strings.Join(got, " ") != "foreign" {
				t.Errorf("list = %q, %v, want it unchanged", got, err)
			}
			if ttl, err := db.TTL(t.Context(), key).Result(); ttl != -1 || err != nil {
				t.Errorf("TTL of the list = %v, %v, want none, as before", ttl, err)
			}
		})
	}
}

func TestErr(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := map[string]struct{ err, want error }{
		"no error":     {nil, nil},
		"no old value": {redis.Nil, nil},
		"an error":     {broken, broken},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Err(redis.NewStatusResult("", tt.err)); !errors.Is(got, tt.want) {
				t.Errorf("Err = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestJitterOnlyAdds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ ttl, most time.Duration }{
		"12 minutes":       {12 * time.Minute, 734 * time.Second},
		"50 seconds":       {50 * time.Second, 51 * time.Second},
		"49 seconds":       {49 * time.Second, 49 * time.Second},
		"a second":         {time.Second, time.Second},
		"a thousand hours": {1000 * time.Hour, 1020 * time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			different := make(map[time.Duration]bool)
			for range 2000 {
				got := jitter(tt.ttl)
				different[got] = true
				if got < tt.ttl || got > tt.most || got%time.Second != 0 {
					t.Fatalf("jitter(%v) = %v, want whole seconds, up to %v", tt.ttl, got, tt.most)
				}
			}
			if tt.most > tt.ttl && len(different) < 2 {
				t.Errorf("jitter(%v) gave one value in 2,000 calls, want several", tt.ttl)
			}
		})
	}
}
