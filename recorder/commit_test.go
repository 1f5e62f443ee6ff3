package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
	"headcount/recorder"
)

// scriptCalls is how many scripts a server ran since warm.
func scriptCalls(t *testing.T, s *redistest.Server) int {
	t.Helper()
	info, err := s.Client().Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatalf("INFO commandstats: %v", err)
	}
	calls := 0
	for _, m := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatalf("INFO commandstats: %v", err)
		}
		calls += n
	}
	return calls
}

// warm makes the server know both scripts, and starts its counting of calls.
func (f *fixture) warm(t *testing.T) {
	t.Helper()
	f.mustPlay(t, "warm", "u1")
	f.mustLeave(t, "warm", "u1", 0)
	if err := f.db.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatalf("CONFIG RESETSTAT: %v", err)
	}
}

func TestPlaysBehindAWriteTravelTogether(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	f.warm(t)
	b := f.newBatch(t)
	for i := range 500 {
		b.play(t, fmt.Sprintf("v%d", i%3), fmt.Sprintf("u%d", i))
	}
	b.write()

	if got, want := scriptCalls(t, f.server), 1+3; got != want {
		t.Errorf("script calls = %d, want %d: one for the play in flight, one for each video behind it", got, want)
	}
	for i, want := range []int{167, 167, 166} {
		video := fmt.Sprintf("v%d", i)
		if got := len(f.viewers(t, video)); got != want {
			t.Errorf("viewers of %s = %d, want %d", video, got, want)
		}
		f.wantCount(t, video, strconv.Itoa(want))
	}
}

func TestHugeBatchOfOneVideo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ plays, calls int }{
		"as many as a call carries": {recorder.MaxPlays, 1},
		"one more":                  {recorder.MaxPlays + 1, 2},
		"as many as can wait":       {5 * recorder.MaxPlays, 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
			f.warm(t)
			b := f.newBatch(t)
			for i := range tt.plays {
				b.play(t, "10001", fmt.Sprintf("u%d", i))
			}
			b.write()
			if got := len(f.viewers(t, "10001")); got != tt.plays {
				t.Errorf("viewers = %d, want %d", got, tt.plays)
			}
			if got, want := scriptCalls(t, f.server), 1+tt.calls; got != want {
				t.Errorf("script calls = %d, want %d", got, want)
			}
		})
	}
}

// Requests of one viewer that travel in one write are carried out in their order.
func TestOrderWithinAWrite(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T, b *batch) { t.Helper(); b.play(t, "10001", "u1") }
	leave := func(t *testing.T, b *batch) { t.Helper(); b.leave(t, "10001", "u1", 0) }
	other := func(t *testing.T, b *batch) { t.Helper(); b.play(t, "10001", "u2") }
	type requests []func(*testing.T, *batch)
	tests := map[string]struct {
		requests requests
		there    bool
		count    string
	}{
		"play, leave":              {requests{play, leave}, false, "0"},
		"leave, play":              {requests{leave, play}, true, "1"},
		"play, leave, play":        {requests{play, leave, play}, true, "1"},
		"play, leave, play, leave": {requests{play, leave, play, leave}, false, "0"},
		"other, play, leave":       {requests{other, play, leave}, false, "2"}, // 1 after the next pass
		"play, leave, other":       {requests{play, leave, other}, false, "1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			b := f.newBatch(t)
			for _, queue := range tt.requests {
				queue(t, b)
			}
			b.write()
			if _, there := f.viewers(t, "10001")["u1"]; there != tt.there {
				t.Errorf("viewer is there %t, want %t", there, tt.there)
			}
			f.wantCount(t, "10001", tt.count)
		})
	}
}

// A server that knows one of the two scripts must not carry out a write's
// requests in another order than one that knows both.
func TestOrderWhileLeavesAreUnknown(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	b := f.newBatch(t)
	b.leave(t, "10001", "u1", 0)
	b.play(t, "10001", "u1")
	b.write()
	if got := f.viewers(t, "10001"); len(got) != 1 {
		t.Errorf("hash after leave and play = %v, want the viewer", got)
	}
}

func TestOrderWhilePlaysAreUnknown(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	b := f.newBatchBehind(t, func() error { return f.Leave(t.Context(), "occupied", "first", 0) })
	b.play(t, "10001", "u1")
	b.leave(t, "10001", "u1", 0)
	b.write()
	if got := f.viewers(t, "10001"); len(got) != 0 {
		t.Errorf("hash after play and leave = %v, want none", got)
	}
}

func TestBusyWhenQueueIsFull(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Shared(t), recorder.Options{Timeout: patience, Queue: 2})
	b := f.newBatch(t)
	b.play(t, "10001", "u1")
	b.leave(t, "10001", "u2", 0)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := f.Play(ctx, "10001", "u3"); !errors.Is(err, recorder.ErrBusy) {
		t.Errorf("Play with a full queue: %v, want %v", err, recorder.ErrBusy)
	}
	if err := f.Leave(ctx, "10001", "u1", 0); !errors.Is(err, recorder.ErrBusy) {
		t.Errorf("Leave with a full queue: %v, want %v", err, recorder.ErrBusy)
	}
	b.write()
	f.mustPlay(t, "10001", "u4")
	got := f.viewers(t, "10001")
	if _, refused := got["u3"]; refused || len(got) != 2 {
		t.Errorf("hash = %v, want u1, queued before, and u4, played after", got)
	}
}

func TestCallerWhoGaveUpIsNotWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.seed(t, "10001", "leaver", at)
	b := f.newBatch(t)
	gaveUp := errors.New("the test gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	want := func(call string, err error) {
		if !errors.Is(err, gaveUp) {
			t.Errorf("%s of a caller who gave up: %v, want %v", call, err, gaveUp)
		}
	}
	b.add(t, func() { _, err := f.Play(ctx, "10001", "u1"); want("Play", err) })
	b.add(t, func() { want("Leave", f.Leave(ctx, "10001", "leaver", 0)) })
	b.play(t, "10001", "u2")
	cancel(gaveUp)
	b.write()

	got := f.viewers(t, "10001")
	_, played := got["u1"]
	_, stayed := got["leaver"]
	if played || !stayed || len(got) != 2 {
		t.Errorf("hash = %v, want u2 and leaver", got)
	}
}

func TestDeadlineOfCallerWhileRedisStalls(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Start(t), recorder.Options{Timeout: patience})
	f.mustPlay(t, "10001", "u1")
	f.server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	for range 2 { // in flight, and behind it
		if _, err := f.Play(ctx, "10001", "u2"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Play while Redis stalls: %v, want %v", err, context.DeadlineExceeded)
		}
	}
	if took := time.Since(start); took > patience/3 {
		t.Errorf("Play took %v, its deadline was 50 ms", took)
	}
	f.server.Resume(t)
	f.mustPlay(t, "10001", "u3")
}

// A caller who goes away does not take along a write that is under way.
func TestWriteOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.shut(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := f.Play(ctx, "10001", "u1")
		first <- err
	}()
	<-g.entered
	cancel()
	g.open()
	if err := <-first; err != nil {
		t.Errorf("Play of the caller who went away meanwhile: %v, want the write's success", err)
	}
	f.mustPlay(t, "10001", "u2")
	if got := f.viewers(t, "10001"); len(got) != 2 {
		t.Errorf("hash = %v, want u1, whose write was under way, and u2", got)
	}
}

func TestForeignKeyFailsItsVideoOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.db.RPush(t.Context(), f.online("bad"), "foreign").Err(); err != nil {
		t.Fatalf("RPUSH: %v", err)
	}
	b := f.newBatch(t)
	b.play(t, "good", "u1")
	b.add(t, func() {
		if _, err := f.Play(t.Context(), "bad", "u2"); !redis.HasErrorPrefix(err, "WRONGTYPE") {
			t.Errorf("Play on a list: %v, want WRONGTYPE", err)
		}
	})
	b.play(t, "good", "u3")
	b.play(t, "fine", "u4")
	b.write()

	for video, want := range map[string]int{"good": 2, "fine": 1} {
		if got := f.viewers(t, video); len(got) != want {
			t.Errorf("viewers of %s = %v, want %d", video, got, want)
		}
	}
	got, err := f.db.LRange(t.Context(), f.online("bad"), 0, -1).Result()
	if err != nil || len(got) != 1 || got[0] != "foreign" {
		t.Errorf("list = %q, %v, want it unchanged", got, err)
	}
	if _, ok := f.published(t, "bad"); ok {
		t.Errorf("a count was published for a video that could not be written")
	}
}
