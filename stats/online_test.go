package stats

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/recorder"
)

func (e *env) wantOnline(want int64) {
	e.Helper()
	before := e.redisNow().Truncate(time.Second)
	got, at, err := e.online.Count(e.Context())
	e.must(err)
	if got != want {
		e.Errorf("online = %d, want %d", got, want)
	}
	if at.Before(before) || at.After(e.redisNow()) {
		e.Errorf("online at %v, want Redis's time", at)
	}
}

func TestOnlineIsWhoeverWasSeen(t *testing.T) {
	onEach(t, func(e *env) {
		e.wantOnline(0)
		for _, video := range []string{"1", "2", "3", "4", "5"} {
			e.play(video, "u1")
		}
		e.wantOnline(1)
		at, err := e.Online(e.Context(), "u2") // watching nothing
		e.must(err)
		if now := e.redisNow().Unix(); at < now-5 || at > now {
			e.Errorf("Online = %d, want Redis's time, %d", at, now)
		}
		e.wantOnline(2)
		e.must(e.Leave(e.Context(), "1", "u1", 0))
		e.wantOnline(2) // who leaves a video is still on the site
		e.must(e.Offline(e.Context(), "u1", 0))
		e.must(e.Offline(e.Context(), "u1", 0))
		e.must(e.Offline(e.Context(), "nobody", 0))
		e.wantOnline(1)
		e.wantTTL(e.k.OnlineUsers(), keyTTL-5*time.Second, keyTTL)
	})
}

func TestOfflineIsGuarded(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	first, err := e.Online(e.Context(), "u1")
	e.must(err)
	// Another tab said so later.
	e.must(e.raw.ZAdd(e.Context(), e.k.OnlineUsers(), redis.Z{Score: float64(first + 1), Member: "u1"}).Err())
	e.must(e.Offline(e.Context(), "u1", first))
	e.wantOnline(1)
	e.must(e.Offline(e.Context(), "u1", first+1))
	e.wantOnline(0)
	if n := e.raw.Exists(e.Context(), e.k.OnlineUsers()).Val(); n != 0 {
		e.Errorf("there is still a set")
	}
}

// At the window's edges, and where a time lies ahead because the clock was set back.
func TestOnlineCountsTheWindow(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	now := e.redisNow().Unix()
	ages := map[string]int64{"now": 0, "just": 595, "gone": 601, "long gone": 86400, "ahead": -110, "far ahead": -300}
	for viewer, age := range ages {
		e.must(e.raw.ZAdd(e.Context(), e.k.OnlineUsers(), redis.Z{Score: float64(now - age), Member: viewer}).Err())
	}
	e.wantOnline(3)
	e.online.SetWindow(time.Hour)
	e.wantOnline(4)
	e.online.SetWindow(window)
	e.must(e.online.trim(e.Context()))
	got := e.raw.ZRange(e.Context(), e.k.OnlineUsers(), 0, -1).Val()
	if len(got) != 3 || got[0] != "just" || got[1] != "now" || got[2] != "ahead" {
		e.Errorf("after trimming there are %q, want just, now, ahead", got)
	}
	e.wantOnline(3)
}

func TestTrimGoesInSteps(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	old := float64(e.redisNow().Unix() - 3600)
	members := make([]redis.Z, 0, 2*trimStep+1)
	for i := range cap(members) {
		members = append(members, redis.Z{Score: old, Member: i})
	}
	e.must(e.raw.ZAdd(e.Context(), e.k.OnlineUsers(), members...).Err())
	e.play("10001", "u1")
	e.must(e.online.trim(e.Context()))
	if n := e.raw.ZCard(e.Context(), e.k.OnlineUsers()).Val(); n != 1 {
		e.Errorf("after trimming there are %d, want 1", n)
	}
}

// A statistic that cannot be written fails no play, but a heartbeat.
func TestOnlineOfAnotherType(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	e.must(e.raw.Set(e.Context(), e.k.OnlineUsers(), "x", time.Minute).Err())
	e.play("10001", "u1")
	e.wantFailures(nameOnline, 1)
	if _, err := e.Online(e.Context(), "u1"); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		e.Errorf("Online = %v, want WRONGTYPE", err)
	}
	if got := e.raw.Get(e.Context(), e.k.OnlineUsers()).Val(); got != "x" {
		e.Errorf("the key is %q, want it left alone", got)
	}
}

// Whoever a full video refuses is in no statistic.
func TestRefusedViewersAreNowhere(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{MaxViewers: 2})
	videos := []string{"1", "1", "1", "1", "2"}
	_, errs := e.PlayAll(e.Context(), videos, []string{"a", "b", "c", "d", "e"})
	for i, err := range errs {
		if refused := i == 2 || i == 3; (err != nil) != refused {
			e.Errorf("play %d: %v, refused should be %t", i, err, refused)
		}
	}
	e.wantOnline(3)
	e.wantUniques("1", "1h", 2)
	e.wantUniques("", "1h", 3)
	e.wantPlays("1", 2)
	e.wantPlays("", 3)
}
