package recorder_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/recorder"
)

// newFullFixture returns a Recorder that lets no video have more viewers than most.
func newFullFixture(t *testing.T, most int) *fixture {
	t.Helper()
	return newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience, MaxViewers: most})
}

func (f *fixture) wantPlay(t *testing.T, videoID, viewerID string, want error) {
	t.Helper()
	if at, err := f.Play(t.Context(), videoID, viewerID); !errors.Is(err, want) || (at == 0) != (want != nil) {
		t.Errorf("Play of %s by %s = %d, %v, want error %v", videoID, viewerID, at, err, want)
	}
}

// wantViewers checks who is in a video's hash.
func (f *fixture) wantViewers(t *testing.T, videoID string, want ...string) {
	t.Helper()
	got := f.viewers(t, videoID)
	for _, viewer := range want {
		if _, ok := got[viewer]; !ok {
			t.Errorf("%s is not in the hash of %s", viewer, videoID)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d viewers in the hash of %s, want %d: %v", len(got), videoID, len(want), got)
	}
}

func TestFullVideoTakesNoNewViewer(t *testing.T) {
	t.Parallel()
	f := newFullFixture(t, 2)
	f.wantPlay(t, "10001", "u1", nil)
	f.wantPlay(t, "10001", "u2", nil)
	f.wantPlay(t, "10001", "u3", recorder.ErrFull)
	f.wantPlay(t, "10001", "u1", nil) // who is counted goes on beating
	f.wantPlay(t, "10002", "u3", nil) // the cap is each video's own
	f.wantViewers(t, "10001", "u1", "u2")
	f.mustLeave(t, "10001", "u1", 0)
	f.wantPlay(t, "10001", "u3", nil)
	f.wantViewers(t, "10001", "u2", "u3")
}

func TestRefusedPlayChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFullFixture(t, 1)
	f.seed(t, "10001", "u1", at)
	if err := f.db.Expire(t.Context(), f.online("10001"), time.Minute).Err(); err != nil {
		t.Fatalf("EXPIRE: %v", err)
	}
	expiry := f.expiry(t, f.online("10001"))
	f.wantPlay(t, "10001", "u2", recorder.ErrFull)
	if got := f.expiry(t, f.online("10001")); !got.Equal(expiry) {
		t.Errorf("the hash expires at %v, want %v as before", got, expiry)
	}
	f.wantViewers(t, "10001", "u1")
	if _, ok := f.published(t, "10001"); ok {
		t.Errorf("a refused play published a count")
	}
}

// A cap that was lowered, or that another program does not know, evicts nobody.
func TestMoreViewersThanTheCap(t *testing.T) {
	t.Parallel()
	f := newFullFixture(t, 2)
	for _, viewer := range []string{"u1", "u2", "u3", "u4"} {
		f.seed(t, "10001", viewer, at)
	}
	f.wantPlay(t, "10001", "u4", nil)
	f.wantPlay(t, "10001", "u5", recorder.ErrFull)
	f.wantViewers(t, "10001", "u1", "u2", "u3", "u4")
}

// Plays that travel together have one answer each, first come first served.
func TestPlaysOfAWriteAreRefusedOneByOne(t *testing.T) {
	t.Parallel()
	full := recorder.ErrFull
	tests := map[string]struct {
		viewers string // of one write's plays, in their order
		want    []error
		there   string
	}{
		"room for all":         {"a b", []error{nil, nil}, "old a b"},
		"room for some":        {"a b c d", []error{nil, nil, full, full}, "old a b"},
		"a beat behind":        {"a b c old", []error{nil, nil, full, nil}, "old a b"},
		"a beat between":       {"a old b c", []error{nil, nil, nil, full}, "old a b"},
		"one of them twice":    {"a a b b c c", []error{nil, nil, nil, nil, full, full}, "old a b"},
		"a new one's own beat": {"a b c a", []error{nil, nil, full, nil}, "old a b"},
		"only beats":           {"old old old old", []error{nil, nil, nil, nil}, "old"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFullFixture(t, 3)
			f.seed(t, "10001", "old", at)
			b := f.newBatch(t)
			viewers := strings.Fields(tt.viewers)
			got := make([]error, len(viewers))
			for i, viewer := range viewers {
				b.add(t, func() { _, got[i] = f.Play(t.Context(), "10001", viewer) })
			}
			b.play(t, "10002", "other") // travels along, unaffected
			b.write()
			if !slices.Equal(got, tt.want) {
				t.Errorf("answers to %q = %v, want %v", tt.viewers, got, tt.want)
			}
			f.wantViewers(t, "10001", strings.Fields(tt.there)...)
			f.wantViewers(t, "10002", "other")
		})
	}
}

// A leave between plays makes room for those after it only.
func TestLeaveMakesRoomWithinAWrite(t *testing.T) {
	t.Parallel()
	f := newFullFixture(t, 1)
	f.mustPlay(t, "10001", "u1")
	b := f.newBatch(t)
	b.add(t, func() { f.wantPlay(t, "10001", "u2", recorder.ErrFull) })
	b.leave(t, "10001", "u1", 0)
	b.add(t, func() { f.wantPlay(t, "10001", "u3", nil) })
	b.write()
	f.wantViewers(t, "10001", "u3")
	f.wantCount(t, "10001", "1")
}

func TestFirstWriteOfAFullVideoPublishesItsCount(t *testing.T) {
	t.Parallel()
	f := newFullFixture(t, 2)
	recordedAt, errs := f.PlayAll(t.Context(), []string{"a", "a", "a", "b"}, []string{"u1", "u2", "u3", "u3"})
	if want := []error{nil, nil, recorder.ErrFull, nil}; !slices.Equal(errs, want) || recordedAt == 0 {
		t.Errorf("PlayAll = %d, %v, want a time and %v", recordedAt, errs, want)
	}
	f.wantCount(t, "a", "2")
	f.wantCount(t, "b", "1")
}

func TestHugeBatchOfAFullVideo(t *testing.T) {
	t.Parallel()
	const most = recorder.MaxPlays + 500 // in the second of three calls
	f := newFullFixture(t, most)
	videos, viewers := manyPlays(2*recorder.MaxPlays+50, 1)
	_, errs := f.PlayAll(t.Context(), videos, viewers)
	for i, err := range errs {
		if want := i >= most; errors.Is(err, recorder.ErrFull) != want || (err != nil) != want {
			t.Fatalf("play %d: %v, want it refused: %t", i, err, want)
		}
	}
	f.wantCount(t, "v0", fmt.Sprint(recorder.MaxPlays)) // as of its first call; the next pass has the rest
	if got := len(f.viewers(t, "v0")); got != most {
		t.Errorf("viewers = %d, want %d", got, most)
	}
}

func TestFullVideoWhileTheScriptIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience, MaxViewers: 1})
	for range 2 {
		f.wantPlay(t, "10001", "u1", nil)
		flush(t, f.db)
		f.wantPlay(t, "10001", "u2", recorder.ErrFull)
		flush(t, f.db)
	}
}

// Without a cap a play costs Redis not one command more.
func TestCommandsOfAPlay(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]string{
		0: "expire hlen hset time",
		2: "expire hlen hlen hset time",       // there is room, whoever it is
		1: "expire hlen hlen hmget hset time", // full, but for the one who is there
	} {
		s := redistest.Start(t)
		f := newFixtureOn(t, s, recorder.Options{Timeout: patience, MaxViewers: most})
		f.warm(t)
		f.seed(t, "10001", "u1", at)
		if err := f.db.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatalf("CONFIG RESETSTAT: %v", err)
		}
		f.mustPlay(t, "10001", "u1")
		if got := commands(t, s); got != want {
			t.Errorf("cap %d: a play runs %s, want %s", most, got, want)
		}
	}
}

// commands names what a server ran of what scripts may run, since its counting began.
func commands(t *testing.T, s *redistest.Server) string {
	t.Helper()
	info, err := s.Client().Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatalf("INFO commandstats: %v", err)
	}
	var names []string
	for line := range strings.Lines(info) {
		name, calls, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		var n int
		if _, err := fmt.Sscanf(calls, "%d,", &n); err == nil && slices.Contains(scriptCommands, name) {
			names = append(names, slices.Repeat([]string{name}, n)...)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

var scriptCommands = []string{"time", "hset", "hlen", "hmget", "hexists", "expire"}

func TestFullVideosOnACluster(t *testing.T) {
	t.Parallel()
	const videos, most, each = 30, 3, 5
	c := redistest.StartCluster(t, 3, 0)
	rdb, err := redisclient.New(redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs(), Timeout: patience})
	if err != nil {
		t.Fatalf("redisclient.New: %v", err)
	}
	defer func() { _ = rdb.Close() }()
	r := recorder.New(rdb, recorder.Options{
		Keys: keys.New("video"), KeyTTL: keyTTL, CountTTL: countTTL, Timeout: patience, MaxViewers: most,
	})

	var load sync.WaitGroup
	var mu sync.Mutex
	recorded := map[string]int{}
	for i := range videos * each {
		load.Go(func() {
			video := fmt.Sprintf("v%d", i%videos)
			_, err := r.Play(t.Context(), video, fmt.Sprintf("u%d", i))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				recorded[video]++
			} else if !errors.Is(err, recorder.ErrFull) {
				t.Errorf("Play: %v, want it recorded or %v", err, recorder.ErrFull)
			}
		})
	}
	load.Wait()
	for v := range videos {
		video := fmt.Sprintf("v%d", v)
		got, err := rdb.HLen(t.Context(), keys.New("video").Online(video)).Result()
		if err != nil || got != most || recorded[video] != most {
			t.Errorf("%s has %d viewers (%v) and %d plays were recorded, want %d", video, got, err, recorded[video], most)
		}
	}
}

func TestFullIsCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	f := newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience, MaxViewers: 1, Registerer: reg})
	f.PlayAll(t.Context(), []string{"a", "a", "a"}, []string{"u1", "u2", "u3"})
	_, _ = f.Play(t.Context(), "a", "u4")
	const want = `
# HELP headcount_plays_total Plays by outcome: recorded, rejected (bad id), full (the video has as many viewers as it may), busy (queue full), abandoned (the caller went away), failed (Redis refused, or took too long).
# TYPE headcount_plays_total counter
headcount_plays_total{outcome="abandoned"} 0
headcount_plays_total{outcome="busy"} 0
headcount_plays_total{outcome="failed"} 0
headcount_plays_total{outcome="full"} 3
headcount_plays_total{outcome="recorded"} 1
headcount_plays_total{outcome="rejected"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "headcount_plays_total"); err != nil {
		t.Error(err)
	}
}
