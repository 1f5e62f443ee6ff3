package aggregator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestSuspectsAreSplitByTime(t *testing.T) {
	t.Parallel()
	list := pack([]suspect{{300, "c"}, {100, "a"}, {200, strings.Repeat("b", 256)}, {100, "日本語"}}, 900)
	if got, want := list.next(10*time.Second), int64(110); got != want {
		t.Errorf("next: got %d, want %d, when the first is stale", got, want)
	}
	none, all := list.split(100)
	if len(none.viewers) != 0 || len(all.packed) != len(list.packed) {
		t.Errorf("split at the first's time: got %v stale, want nobody", none)
	}
	stale, rest := list.split(201)
	want := candidates{[]any{"a", "日本語", strings.Repeat("b", 256)}, []any{"100", "100", "200"}}
	if diff := cmp.Diff(want, stale, cmp.AllowUnexported(candidates{})); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
	if got := rest.next(10 * time.Second); got != 310 {
		t.Errorf("next of the rest: got %d, want 310", got)
	}
	if _, rest = rest.split(1000); rest.next(10*time.Second) != 900 {
		t.Errorf("next of nobody: got %d, want 900, when the hash must be read", rest.next(10*time.Second))
	}
	if rest.size != list.size {
		t.Errorf("size: got %d, want %d as long as the rest is held", rest.size, list.size)
	}
}

// age makes so many seconds of the memory pass for a video: whoever is
// remembered was seen that much earlier, and so are the times in its hash.
func (e *env) age(video string, viewers []string, seconds int64) {
	e.t.Helper()
	ctx := e.t.Context()
	for _, viewer := range viewers {
		at, err := e.raw.HGet(ctx, e.k.Online(video), viewer).Int64()
		must(e.t, err)
		must(e.t, e.raw.HSet(ctx, e.k.Online(video), viewer, at-seconds).Err())
	}
	m := e.agg.kept.Load()
	s := m.see(video, 0)
	var list []suspect
	who, rest := s.suspects.split(e.now())
	for i, viewer := range who.viewers {
		at, err := strconv.ParseInt(who.values[i].(string), 10, 64)
		must(e.t, err)
		list = append(list, suspect{uint32(at - seconds), viewer.(string)})
	}
	s.suspects = pack(list, rest.until-seconds)
	m.keep(s, s.due-seconds, s.renew, s.large)
}

// Between two readings of a large hash, those who may be stale are evicted by
// name, unless they came back, left, or are seen in time.
func TestPassEvictsSuspectsWithoutReading(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		e.seedMany("popular", 1000, 0)
		e.seed("popular", map[string]int64{"vanished": 400, "back": 400, "left": 400, "later": 350})
		e.pass()
		e.wantCounts(map[string]string{"popular": "1004"})
		if held := e.agg.kept.Load().held; held != 4*suspectHead+len("vanishedbackleftlater") {
			t.Errorf("%d bytes of suspects are held, want those of four", held)
		}

		e.age("popular", []string{"vanished", "back", "left", "later"}, 220)
		must(t, e.raw.HSet(ctx, e.k.Online("popular"), "back", e.now()).Err())
		must(t, e.raw.HDel(ctx, e.k.Online("popular"), "left").Err())
		spy := spyOn(e)
		sum := e.pass()
		if sent := spy.take(); sent["hscan"]+sent["hrandfield"] != 0 || sent["evalsha"] != 1 {
			t.Errorf("sent %v, want no reading and one eviction", sent)
		}
		if sum.Evicted != 1 || sum.Viewers != 1002 {
			t.Errorf("got %d evicted and %d viewers, want 1 and 1002", sum.Evicted, sum.Viewers)
		}
		e.wantCounts(map[string]string{"popular": "1002"})
		if e.raw.HExists(ctx, e.k.Online("popular"), "vanished").Val() {
			t.Error("who vanished is still in the hash")
		}
		e.pass()
		if sent := spy.take(); sent["hscan"]+sent["evalsha"] != 0 {
			t.Errorf("the next pass sent %v, want nothing evicted twice", sent)
		}

		e.age("popular", []string{"later"}, 100) // the half window is over as well
		if sum := e.pass(); sum.Evicted != 1 {
			t.Errorf("evicted: got %d, want the one who vanished later", sum.Evicted)
		}
		if sent := spy.take(); sent["hscan"] == 0 {
			t.Errorf("sent %v, want the hash read after half a window", sent)
		}
		e.wantCounts(map[string]string{"popular": "1001"})
	})
}

// An eviction that fails is made again by the next pass.
func TestPassKeepsSuspectsWhoseEvictionFailed(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedMany("popular", 1000, 0)
		e.seed("popular", map[string]int64{"vanished": 400})
		e.pass()
		e.age("popular", []string{"vanished"}, 220)
		hash := e.k.Online("popular")
		value := e.raw.HGet(t.Context(), hash, "vanished").Val()
		var failed atomic.Bool
		e.intercept(hook{atOnce: true, after: func(_ context.Context, cmds []redis.Cmder) {
			for _, cmd := range cmds {
				if (names(cmd, "evalsha", hash) || names(cmd, "eval", hash)) && !failed.Swap(true) {
					cmd.SetErr(errors.New("lost"))
				}
			}
		}})
		if sum, err := e.agg.Pass(t.Context()); err == nil || sum.Errors != 1 {
			t.Errorf("got %d errors and %v, want the failed eviction reported", sum.Errors, err)
		}
		e.wantCounts(map[string]string{"popular": "1001"})
		must(t, e.raw.HSet(t.Context(), hash, "vanished", value).Err()) // it was lost on its way there
		spy := spyOn(e)
		if sum := e.pass(); sum.Evicted != 1 || sum.Viewers != 1000 {
			t.Errorf("got %d evicted and %d viewers, want 1 and 1000", sum.Evicted, sum.Viewers)
		}
		if sent := spy.take(); sent["hscan"] != 0 {
			t.Errorf("sent %v, want nothing read", sent)
		}
		e.wantCounts(map[string]string{"popular": "1000"})
	})
}

// A hash must not expire before it is read again, and that is later than when
// the first suspect is stale.
func TestPassKeepsAHashWithSuspectsUntilItsNextReading(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		e.seedMany("popular", 1000, 0)
		e.seed("popular", map[string]int64{"vanished": 400})
		must(t, e.raw.Expire(t.Context(), e.k.Online("popular"), 400*time.Second).Err())
		e.pass()
		e.wantTTL(e.k.Online("popular"), keyTTL-10*time.Second, keyTTL)
	})
}

// A hash without anybody to suspect, or with too many, is read as if there were
// no suspects.
func TestPassSuspectsOnlyWhomItCanKeep(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, tc := range []struct {
		name     string
		viewer   string
		value    string
		room     int
		listed   int
		unlisted bool
	}{
		{"to be stale after the next reading", "v", "1699999700", 1000, 0, false},
		{"to be stale before", "v", "1699999699", 1000, 1, false},
		{"no room", "v", "1699999699", suspectHead, 0, true},
		{"just room", "v", "1699999699", suspectHead + 1, 1, false},
		{"a fraction", "v", "1699999699.5", 1000, 0, true},
		{"a leading zero", "v", "01699999699", 1000, 0, true},
		{"an id of another program", strings.Repeat("v", 257), "1699999699", 1000, 0, true},
	} {
		s := &sweep{pass: &pass{window: window, now: now, memory: newMemory(0)}, room: tc.room}
		s.setClock(now)
		s.newest = now.Unix()
		r := &reading{sight: sight{large: true}}
		s.look(r, tc.viewer, tc.value)
		if len(r.list) != tc.listed || r.unlisted != tc.unlisted {
			t.Errorf("%s: got %d listed, unlisted %v; want %d, %v", tc.name, len(r.list), r.unlisted, tc.listed, tc.unlisted)
		}
		if tc.unlisted && s.listed != 0 {
			t.Errorf("%s: got %d bytes taken, want them given back", tc.name, s.listed)
		}
	}
}

func TestOneVideoMayNotTakeAllRoomForSuspects(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	s := &sweep{pass: &pass{window: window, memory: newMemory(0)}, room: maxSuspects}
	s.setClock(now)
	s.newest = now.Unix()
	r := &reading{sight: sight{large: true}}
	viewers := 0
	for ; !r.unlisted; viewers++ {
		s.look(r, fmt.Sprintf("%0250d", viewers), "1699999500")
	}
	if took := viewers * (suspectHead + 250); took < maxSuspects/4 || took > maxSuspects/4+512 {
		t.Errorf("one video took %d bytes, want up to %d", took, maxSuspects/4)
	}
}

// Whatever makes the memory forget a video makes it forget its suspects, or
// their bytes would be held for ever.
func TestMemoryHoldsNoSuspectsOfForgottenVideos(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	full := oneTooMany(m)
	for _, video := range full[:bucketSize] {
		s := m.see(video, 1)
		s.suspects = pack([]suspect{{100, "viewer"}}, 500)
		m.keep(s, 110, 7, true)
	}
	const one = suspectHead + len("viewer")
	if m.held != bucketSize*one {
		t.Fatalf("held: got %d, want %d", m.held, bucketSize*one)
	}
	m.see(full[bucketSize], 2) // in the place of another
	if m.held != (bucketSize-1)*one || len(m.suspects) != bucketSize-1 {
		t.Errorf("held after one was dropped: got %d bytes of %d videos", m.held, len(m.suspects))
	}
	if room := m.room(); room != maxSuspects-m.held {
		t.Errorf("room: got %d, want what is left of %d", room, maxSuspects)
	}
	m.grow()
	if m.held != (bucketSize-1)*one {
		t.Errorf("held after the table grew: got %d, want as before", m.held)
	}
	var last sight
	for _, video := range full[:bucketSize] {
		if s := m.see(video, 3); s.suspects.size > 0 {
			last = s
		}
	}
	last.suspects = suspects{}
	m.keep(last, 0, 7, true)
	if m.held != (bucketSize-2)*one {
		t.Errorf("held after one was read without suspects: got %d", m.held)
	}
	m.forget()
	if m.held != 0 || len(m.suspects) != 0 {
		t.Errorf("held after all was forgotten: got %d bytes of %d videos", m.held, len(m.suspects))
	}
}
