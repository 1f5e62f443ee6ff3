package modeltest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"headcount/aggregator"
	"headcount/internal/redistest"
)

// Many players at once, two workers, and a Redis that forgets its scripts: when
// all is quiet, the counts are what the players' own books say, and no count
// was ever more than the viewers there are.
func TestModelConcurrently(t *testing.T) {
	t.Parallel()
	const players, viewersEach, operations = 8, 15, 250
	videos := []string{"10001", "10002", "10003"}
	w := newWorld(t, redistest.Shared(t).Addr(), nil)
	w.clock = &realClock{w.rdb}
	ctx := t.Context()

	done := make(chan struct{})
	var workers sync.WaitGroup
	for _, agg := range []*aggregator.Aggregator{w.agg, w.other} {
		workers.Go(func() {
			for running(done) {
				if _, err := agg.Pass(ctx); err != nil {
					t.Error(err)
				}
				for _, video := range videos {
					if got, _ := w.rdb.Get(ctx, w.k.Count(video)).Int(); got < 0 || got > players*viewersEach {
						t.Errorf("count of %s: got %d of at most %d viewers", video, got, players*viewersEach)
					}
				}
			}
		})
	}
	workers.Go(func() {
		for running(done) {
			if err := w.rdb.ScriptFlush(ctx).Err(); err != nil {
				t.Error(err)
			}
		}
	})

	books := make([]*model, players) // each has viewers of its own, so its book is certain
	var playing sync.WaitGroup
	for i := range books {
		books[i] = newModel(int64(window / time.Second))
		playing.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			for range operations {
				w.playerDoes(r, books[i], videos[r.IntN(len(videos))], fmt.Sprintf("p%d-u%d", i, r.IntN(viewersEach)))
			}
		})
	}
	playing.Wait()
	close(done)
	workers.Wait()

	total := newModel(int64(window / time.Second))
	for _, book := range books {
		for video, viewers := range book.videos {
			for viewer, value := range viewers {
				total.writeAt(w.clock.now(), video, viewer, value)
			}
		}
	}
	w.passAndCompare(total)
}

func running(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// playerDoes one thing and notes it in the player's own book.
func (w *world) playerDoes(r *rand.Rand, book *model, video, viewer string) {
	ctx := w.t.Context()
	switch r.IntN(10) {
	default:
		at, err := w.rec.Play(ctx, video, viewer)
		if err != nil {
			w.t.Error(err)
		}
		book.write(video, viewer, strconv.FormatInt(at, 10))
	case 0, 1, 2:
		if err := w.rec.Leave(ctx, video, viewer, 0); err != nil {
			w.t.Error(err)
		}
		book.leave(video, viewer, 0)
	case 3:
		now := w.clock.now()
		value := strconv.FormatInt(now-700, 10) // stale when it is written
		if err := w.rdb.HSet(ctx, w.k.Online(video), viewer, value).Err(); err != nil {
			w.t.Error(err)
		}
		book.writeAt(now, video, viewer, value)
	}
}
