package recorder_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlayStoresRedisTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.now(t).Unix()
	recordedAt := f.mustPlay(t, "10001", "u1")
	after := f.now(t).Unix()

	if recordedAt < before || recordedAt > after {
		t.Errorf("Play = %d, want Redis's time, %d to %d", recordedAt, before, after)
	}
	want := map[string]string{"u1": strconv.FormatInt(recordedAt, 10)}
	if diff := cmp.Diff(want, f.viewers(t, "10001")); diff != "" {
		t.Errorf("hash after a play (-want +got):\n%s", diff)
	}
}

func TestPlayRenewsOldTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.seed(t, "10001", "u1", 1_600_000_000)
	recordedAt := f.mustPlay(t, "10001", "u1")
	want := map[string]string{"u1": strconv.FormatInt(recordedAt, 10)}
	if diff := cmp.Diff(want, f.viewers(t, "10001")); diff != "" {
		t.Errorf("hash after a play (-want +got):\n%s", diff)
	}
}

func TestEveryPlayRenewsKeyTTL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.now(t)
	f.mustPlay(t, "10001", "u1")
	f.wantTTL(t, f.online("10001"), before, keyTTL, keyTTL)

	for _, viewer := range []string{"u1", "u2"} {
		if err := f.db.Expire(t.Context(), f.online("10001"), time.Minute).Err(); err != nil {
			t.Fatalf("EXPIRE: %v", err)
		}
		before = f.now(t)
		f.mustPlay(t, "10001", viewer)
		f.wantTTL(t, f.online("10001"), before, keyTTL, keyTTL)
	}
}

func TestPlayGivesTTLToForeignHash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.seed(t, "10001", "foreign", 1_600_000_000) // as another program writes: without a TTL
	before := f.now(t)
	f.mustPlay(t, "10001", "u1")
	f.wantTTL(t, f.online("10001"), before, keyTTL, keyTTL)
}

func TestBeatsAreOneViewer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 10 {
		f.mustPlay(t, "10001", "u1")
	}
	if got := f.viewers(t, "10001"); len(got) != 1 {
		t.Errorf("hash after 10 plays of one viewer = %v, want one field", got)
	}
	f.wantCount(t, "10001", "1")
}

func TestFirstPlaySetsCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.now(t)
	f.mustPlay(t, "10001", "u1")
	f.wantCount(t, "10001", "1")
	f.wantTTL(t, f.count("10001"), before, countTTL, countTTL*102/100)
}

func TestFirstPlayCorrectsCountAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.db.Set(t.Context(), f.count("10001"), 0, time.Minute).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	before := f.now(t)
	f.mustPlay(t, "10001", "u1")
	f.wantCount(t, "10001", "1")
	f.wantTTL(t, f.count("10001"), before, countTTL, countTTL*102/100)
}

func TestSecondViewerLeavesCountAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mustPlay(t, "10001", "u1")
	if err := f.db.Set(t.Context(), f.count("10001"), "as the pass wrote it", time.Minute).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	expiry := f.expiry(t, f.count("10001"))
	f.mustPlay(t, "10001", "u2")
	f.mustPlay(t, "10001", "u1")
	f.wantCount(t, "10001", "as the pass wrote it")
	if got := f.expiry(t, f.count("10001")); !got.Equal(expiry) {
		t.Errorf("count key expires at %v, want %v as before", got, expiry)
	}
}

func TestPlayAfterLastLeaveSetsCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mustLeave(t, "10001", "u1", f.mustPlay(t, "10001", "u1"))
	f.wantCount(t, "10001", "0")
	before := f.now(t)
	f.mustPlay(t, "10001", "u2")
	f.wantCount(t, "10001", "1")
	f.wantTTL(t, f.count("10001"), before, countTTL, countTTL*102/100)
}

// A count key that cannot be set is the pass's to report; the play is recorded.
func TestPlaySucceedsWithForeignCountKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.db.RPush(t.Context(), f.count("10001"), "foreign").Err(); err != nil {
		t.Fatalf("RPUSH: %v", err)
	}
	f.mustPlay(t, "10001", "u1")
	if got := f.viewers(t, "10001"); len(got) != 1 {
		t.Errorf("hash = %v, want one viewer", got)
	}
	got, err := f.db.LRange(t.Context(), f.count("10001"), 0, -1).Result()
	if err != nil || len(got) != 1 || got[0] != "foreign" {
		t.Errorf("list at the count key = %q, %v, want it unchanged", got, err)
	}
}
