package aggregator

import (
	"errors"
	"testing"
	"time"
)

func TestCountIsThePassForOneVideo(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seed("10001", map[string]int64{"a": 0, "b": 0, "gone": 700})
		e.seedValues("10001", map[string]string{"nonsense": "text"})
		e.seed("10002", map[string]int64{"a": 0})
		before := e.now()

		viewers, at, err := e.agg.Count(t.Context(), "10001")

		if err != nil || viewers != 2 {
			t.Errorf("got %d, %v; want 2 viewers", viewers, err)
		}
		if at.Unix() < before || at.Unix() > e.now() {
			t.Errorf("at: got %v, want now", at)
		}
		e.wantViewers("10001", "a", "b")
		e.wantCounts(map[string]string{"10001": "2", "10002": ""})
		e.wantTTL(e.k.Online("10001"), keyTTL-5*time.Second, keyTTL)
	})
}

// A stranger who looks up invented ids must not fill Redis with counts.
func TestCountOfAVideoWithoutHashIsZeroAndWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		must(t, e.raw.Set(t.Context(), e.k.Online("other type"), "x", 0).Err())
		for _, video := range []string{"unknown", "other type"} {
			viewers, at, err := e.agg.Count(t.Context(), video)
			if viewers != 0 || at.IsZero() || err != nil {
				t.Errorf("%s: got %d at %v, %v; want 0 now", video, viewers, at, err)
			}
			e.wantCounts(map[string]string{video: ""})
		}
	})
}

func TestCountOfALargeHashIsItsLength(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedMany("large", maxCount, 0)
		e.seed("large", map[string]int64{"gone": 700})
		viewers, at, err := e.agg.Count(t.Context(), "large")
		if viewers != maxCount+1 || !at.IsZero() || err != nil {
			t.Errorf("got %d at %v, %v; want %d at no known time", viewers, at, err, maxCount+1)
		}
		e.wantCounts(map[string]string{"large": ""})
	})
}

func TestCountOfSeveralPages(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedMany("10001", 3000, 0)
		e.seedMany("10001", 1000, 700)
		viewers, _, err := e.agg.Count(t.Context(), "10001")
		if viewers != 3000 || err != nil {
			t.Errorf("got %d, %v; want 3000", viewers, err)
		}
	})
}

// Unknown is not zero.
func TestCountThatFailsIsAnError(t *testing.T) {
	broken := errors.New("broken on purpose")
	for _, command := range []string{"hlen", "hrandfield"} {
		t.Run(command, func(t *testing.T) {
			onEach(t, func(t *testing.T, e *env) {
				e.seed("10001", map[string]int64{"a": 0})
				e.fail(command, e.k.Online("10001"), broken)
				if viewers, _, err := e.agg.Count(t.Context(), "10001"); !errors.Is(err, broken) {
					t.Errorf("got %d, %v; want the error %v", viewers, err, broken)
				}
				e.wantCounts(map[string]string{"10001": ""})
			})
		})
	}
}

func TestLastSeen(t *testing.T) {
	t.Parallel()
	const newest = 2_000_000_000
	for _, tc := range []struct {
		value string
		at    int64
		ok    bool
	}{
		{"1700000000", 1700000000, true},
		{"1700000000.75", 1700000000, true},
		{"1700000000.", 1700000000, true},
		{"2000000000", 2000000000, true},
		{"2000000001", 2000000001, false},
		{"1700000000000", 1700000000000, false},
		{"0", 0, false},
		{"", 0, false},
		{".5", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1e9", 0, false},
		{"0x5", 0, false},
		{"1 ", 0, false},
		{"99999999999999999999999999", 0, false},
	} {
		at, ok := lastSeen(tc.value, newest)
		if ok != tc.ok || (ok && at != tc.at) {
			t.Errorf("lastSeen(%q) = %d, %v; want %d, %v", tc.value, at, ok, tc.at, tc.ok)
		}
	}
}
