package lastpass_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/internal/lastpass"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const ttl = 15 * time.Minute

func pass(startedAt int64, holder string, errors int64) lastpass.Pass {
	return lastpass.Pass{
		StartedAt: startedAt, FinishedAt: startedAt + 1, TookMS: 1200, Videos: 2, Viewers: 5,
		Read: 3, Skipped: 4, Evicted: 6, Errors: errors, Holder: holder,
	}
}

func write(t *testing.T, rdb *redis.Client, key string, passes ...lastpass.Pass) {
	t.Helper()
	for _, p := range passes {
		if err := lastpass.Write(t.Context(), rdb, key, ttl, p); err != nil {
			t.Fatal(err)
		}
	}
}

func wantRecord(t *testing.T, rdb *redis.Client, key string, want lastpass.Record) {
	t.Helper()
	got, err := lastpass.Read(t.Context(), rdb, key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	rdb, key := redistest.Shared(t).Client(), redistest.Prefix(t)
	wantRecord(t, rdb, key, lastpass.Record{})

	first, second := pass(1000, "a:1", 0), pass(1030, "a:1", 7)
	write(t, rdb, key, first, second)
	wantRecord(t, rdb, key, lastpass.Record{
		Passes: 2, CompletedAt: time.Unix(1001, 0), LeadingSince: time.Unix(1000, 0),
		Recent: []lastpass.Pass{second, first},
	})

	third, fourth := pass(1060, "b:2", 0), pass(1090, "b:2", 0)
	write(t, rdb, key, third, fourth)
	wantRecord(t, rdb, key, lastpass.Record{
		Passes: 4, CompletedAt: time.Unix(1091, 0), LeadingSince: time.Unix(1060, 0),
		Recent: []lastpass.Pass{fourth, third, second, first},
	})
}

func TestFields(t *testing.T) {
	t.Parallel()
	rdb, key := redistest.Shared(t).Client(), redistest.Prefix(t)
	complete, partial := pass(1000, "a:1", 0), pass(1030, "a:1", 7)
	complete.CountsUntil, partial.CountsUntil = 1360, 1390
	write(t, rdb, key, complete, partial)
	got := rdb.HGetAll(t.Context(), key).Val()
	delete(got, "recent")
	want := map[string]string{
		"passes": "2", "started_at": "1030", "finished_at": "1001", "took_ms": "1200", "videos": "2", "viewers": "5", "read": "3",
		"skipped": "4", "evicted": "6", "errors": "7", "holder": "a:1", "leading_since": "1000",
		"counts_until": "1360",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if left := rdb.TTL(t.Context(), key).Val(); left < ttl-time.Minute || left > ttl {
		t.Errorf("TTL = %v, want %v", left, ttl)
	}
}

// However many passes there were, the hash stays small.
func TestKeepsTheLastTwenty(t *testing.T) {
	t.Parallel()
	rdb, key := redistest.Shared(t).Client(), redistest.Prefix(t)
	for i := range int64(25) {
		write(t, rdb, key, pass(1000+30*i, "a:1", 0))
	}
	r, err := lastpass.Read(t.Context(), rdb, key)
	if err != nil {
		t.Fatal(err)
	}
	if r.Passes != 25 || len(r.Recent) != 20 || r.Recent[0].StartedAt != 1720 || r.Recent[19].StartedAt != 1150 {
		t.Errorf("%d passes, %d of them kept, %+v; want 25, the last 20", r.Passes, len(r.Recent), r.Recent)
	}
}

// What somebody else wrote is nothing, and does not stay.
func TestNonsense(t *testing.T) {
	t.Parallel()
	rdb, key := redistest.Shared(t).Client(), redistest.Prefix(t)
	err := rdb.HSet(t.Context(), key, "passes", "x", "finished_at", "-7", "leading_since", "", "recent", "{").Err()
	if err != nil {
		t.Fatal(err)
	}
	wantRecord(t, rdb, key, lastpass.Record{})
	p := pass(1000, "", 0)
	write(t, rdb, key, p)
	wantRecord(t, rdb, key, lastpass.Record{
		Passes: 1, CompletedAt: time.Unix(1001, 0), LeadingSince: time.Unix(1000, 0), Recent: []lastpass.Pass{p},
	})
}

func TestAnotherType(t *testing.T) {
	t.Parallel()
	rdb, key := redistest.Shared(t).Client(), redistest.Prefix(t)
	if err := rdb.Set(t.Context(), key, "foreign", ttl).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := lastpass.Read(t.Context(), rdb, key); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("Read() = %v, want WRONGTYPE", err)
	}
	if err := lastpass.Write(t.Context(), rdb, key, ttl, pass(1000, "a:1", 0)); err == nil {
		t.Error("Write() = nil, want an error")
	}
}
