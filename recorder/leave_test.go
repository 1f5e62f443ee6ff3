package recorder_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// at is a time that other tests' values are compared with, Unix seconds.
const at = 1_700_000_000

func TestLeaveGuard(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stored     string
		recordedAt int64
		stays      bool
	}{
		"newer stays":                       {"1700000001", at, true},
		"newer by a fraction stays":         {"1700000000.5", at, true},
		"much newer stays":                  {"99999999999999999999", at, true},
		"equal goes":                        {"1700000000", at, false},
		"equal with an empty fraction goes": {"1700000000.", at, false},
		"equal with a zero fraction goes":   {"1700000000.000", at, false},
		"older goes":                        {"1699999999", at, false},
		"older by length goes":              {"999999999", at, false},
		"zero goes":                         {"0", at, false},
		"leading zeros are decimal":         {"01700000000", at, false},
		"newer goes without a guard":        {"1700000001", 0, false},
		"newer goes by a negative time":     {"1700000001", -1, false},
		"text goes":                         {"soon", at, false},
		"empty goes":                        {"", at, false},
		"negative goes":                     {"-1700000001", at, false},
		"hexadecimal goes":                  {"0xffffffff", at, false},
		"exponent goes":                     {"1e30", at, false},
		"two points go":                     {"1700000001.5.5", at, false},
		"point first goes":                  {".5", at, false},
		"space goes":                        {" 1700000001", at, false},
		"newline goes":                      {"1700000001\n", at, false},
		"nan goes":                          {"nan", at, false},
		"infinity goes":                     {"inf", at, false},
		"other digits go":                   {"١٧٠٠٠٠٠٠٠١", at, false},
		"text goes without a guard":         {"soon", 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.seed(t, "10001", "u1", tt.stored)
			f.mustLeave(t, "10001", "u1", tt.recordedAt)
			if _, stays := f.viewers(t, "10001")["u1"]; stays != tt.stays {
				t.Errorf("stored %q, left with %d: viewer stays %t, want %t", tt.stored, tt.recordedAt, stays, tt.stays)
			}
		})
	}
}

var decimal = regexp.MustCompile(`^[0-9]+\.?[0-9]*$`)

// newer says in Go what leave.lua says in Lua.
func newer(stored string, recordedAt int64) bool {
	seen, _ := strconv.ParseFloat(stored, 64) // out of range is infinite, as in Lua
	return recordedAt > 0 && decimal.MatchString(stored) && seen > float64(recordedAt)
}

func FuzzLeaveGuard(f *testing.F) {
	for _, stored := range []string{"1700000001", "1700000000.", "1700000000.5", "1e30", "0x7fffffff", "", "soon", "1700000001\n"} {
		f.Add(stored, int64(at))
	}
	f.Add("9007199254740993", int64(9007199254740992))
	f.Fuzz(func(t *testing.T, stored string, recordedAt int64) {
		x := newFixture(t)
		x.seed(t, "10001", "u1", stored)
		x.mustLeave(t, "10001", "u1", recordedAt)
		_, got := x.viewers(t, "10001")["u1"]
		if want := newer(stored, recordedAt); got != want {
			t.Errorf("stored %q, left with %d: viewer stays %t, want %t", stored, recordedAt, got, want)
		}
		if err := x.db.Del(t.Context(), x.online("10001")).Err(); err != nil {
			t.Fatalf("DEL: %v", err)
		}
	})
}

func TestLeaveWithItsOwnPlay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	recordedAt := f.mustPlay(t, "10001", "u1")
	f.mustPlay(t, "10001", "u2")
	f.mustLeave(t, "10001", "u1", recordedAt)
	got := f.viewers(t, "10001")
	if _, stays := got["u2"]; len(got) != 1 || !stays {
		t.Errorf("hash = %v, want u2 alone", got)
	}
}

func TestTwoTabs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	second := f.mustPlay(t, "10001", "u1")
	first := second - 60 // the first tab's play was a minute ago
	f.mustLeave(t, "10001", "u1", first)
	if got := f.viewers(t, "10001"); len(got) != 1 {
		t.Errorf("hash after the first tab left = %v, want the viewer", got)
	}
	f.wantCount(t, "10001", "1")

	f.mustLeave(t, "10001", "u1", second)
	if got := f.viewers(t, "10001"); len(got) != 0 {
		t.Errorf("hash after both tabs left = %v, want none", got)
	}
	f.wantCount(t, "10001", "0")
}

func TestLeaveThrice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	recordedAt := f.mustPlay(t, "10001", "u1")
	f.mustLeave(t, "10001", "u1", recordedAt)
	f.wantCount(t, "10001", "0")
	if err := f.db.Expire(t.Context(), f.count("10001"), time.Minute).Err(); err != nil {
		t.Fatalf("EXPIRE: %v", err)
	}
	expiry := f.expiry(t, f.count("10001"))

	for range 2 {
		f.mustLeave(t, "10001", "u1", recordedAt)
		f.wantCount(t, "10001", "0")
		if got := f.expiry(t, f.count("10001")); !got.Equal(expiry) {
			t.Errorf("count key expires at %v after a leave of nobody, want %v as before", got, expiry)
		}
	}
	if got := f.viewers(t, "10001"); len(got) != 0 {
		t.Errorf("hash after three leaves = %v, want none", got)
	}
}

func TestLeaveOfUnseenViewerCreatesNoKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, recordedAt := range []int64{0, at} {
		f.mustLeave(t, "10001", "never seen", recordedAt)
	}
	f.wantNoKeys(t)
}

func TestLeaveOfUnseenViewerLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mustPlay(t, "10001", "u1")
	f.mustLeave(t, "10001", "never seen", 0)
	if got := f.viewers(t, "10001"); len(got) != 1 {
		t.Errorf("hash = %v, want u1", got)
	}
	f.wantCount(t, "10001", "1")
}

func TestLastLeaveSetsExistingCountToZero(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.seed(t, "10001", "u1", at)
	f.seed(t, "10001", "u2", at)
	if err := f.db.Set(t.Context(), f.count("10001"), 2, time.Minute).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	f.mustLeave(t, "10001", "u1", 0)
	f.wantCount(t, "10001", "2") // the pass's to change: only a last leave shows at once

	before := f.now(t)
	f.mustLeave(t, "10001", "u2", 0)
	f.wantCount(t, "10001", "0")
	f.wantTTL(t, f.count("10001"), before, countTTL, countTTL*102/100)
}

func TestLastLeaveCreatesNoCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.seed(t, "10001", "u1", at)
	f.mustLeave(t, "10001", "u1", 0)
	f.wantNoKeys(t)
}

func TestLeaveDoesNotRenewTTL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.seed(t, "10001", "u1", at)
	f.mustLeave(t, "10001", "never seen", 0)
	if ttl, err := f.db.TTL(t.Context(), f.online("10001")).Result(); ttl != -1 || err != nil {
		t.Errorf("TTL after a leave = %v, %v, want none, as before", ttl, err)
	}
}

func TestLeaveOfForeignKeyFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.db.Set(t.Context(), f.online("10001"), "foreign", 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := f.Leave(t.Context(), "10001", "u1", 0); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("Leave: %v, want WRONGTYPE", err)
	}
	if got, err := f.db.Get(t.Context(), f.online("10001")).Result(); got != "foreign" || err != nil {
		t.Errorf("foreign key = %q, %v, want it unchanged", got, err)
	}
}
