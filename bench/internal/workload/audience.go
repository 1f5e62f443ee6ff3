package workload

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"headcount/bench/internal/dataset"
	"headcount/recorder"
)

// How the steady audience behaves.
const (
	meanStay    = 10 * time.Minute // a viewer's, distributed exponentially
	leavingOf10 = 8                // of ten viewers say that they leave; the others vanish
	zipf        = 1.01             // exponent of the videos' popularity
	beat        = int64(dataset.Beat / time.Second)
	window      = int64(dataset.Window / time.Second)
)

// audience is viewers who come, beat, and leave or vanish, by a clock of whole
// seconds. Their number stays the same: for everyone who goes, another comes.
type audience struct {
	rec    *recorder.Recorder
	random *rand.Rand
	videos *rand.Zipf
	here   []viewer
	gone   []int64 // when those who vanished were last seen
	born   int64   // viewers so far
}

type viewer struct {
	video, id string
	lastSeen  int64 // Unix seconds; 0: is still to come
	next      int64 // when to play, or to beat
	until     int64 // when the viewer goes
}

// newAudience returns size viewers who arrive within the first beat.
func newAudience(rec *recorder.Recorder, size, videos int, now int64) *audience {
	random := rand.New(rand.NewPCG(1, 2)) // the same audience in every run
	a := &audience{
		rec:    rec,
		random: random,
		videos: rand.NewZipf(random, zipf, 1, uint64(videos-1)),
		here:   make([]viewer, size),
	}
	for i := range a.here {
		a.here[i] = a.newcomer(now + a.random.Int64N(beat))
	}
	return a
}

func (a *audience) newcomer(comes int64) viewer {
	a.born++
	stay := int64(a.random.ExpFloat64() * meanStay.Seconds())
	return viewer{
		video: strconv.FormatUint(10_000_000+a.videos.Uint64(), 10),
		id:    "u" + strconv.FormatInt(1_000_000_000+a.born, 10),
		next:  comes,
		until: comes + 1 + stay,
	}
}

// second lets everybody do what is due at now. Most of it goes on side by side,
// as it does between players and a recorder.
func (a *audience) second(ctx context.Context, now int64) error {
	const sideBySide = 1024
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for i := range a.here {
		v := &a.here[i]
		switch {
		case v.until <= now:
			a.goes(ctx, &group, *v)
			*v = a.newcomer(now + 1)
		case v.next <= now:
			v.lastSeen, v.next = now, now+beat
			video, id := v.video, v.id
			group.Go(func() error {
				_, err := a.rec.Play(ctx, video, id)
				return err
			})
		}
	}
	return group.Wait()
}

// goes lets a viewer leave, or vanish without a word.
func (a *audience) goes(ctx context.Context, group *errgroup.Group, v viewer) {
	if a.random.IntN(10) < leavingOf10 {
		group.Go(func() error { return a.rec.Leave(ctx, v.video, v.id, v.lastSeen) })
		return
	}
	a.gone = append(a.gone, v.lastSeen)
}

// watching is how many viewers a pass has to count at now.
func (a *audience) watching(now int64) int64 {
	var n int64
	for _, v := range a.here {
		if v.lastSeen > 0 && v.lastSeen >= now-window {
			n++
		}
	}
	still := a.gone[:0]
	for _, lastSeen := range a.gone {
		if lastSeen >= now-window {
			still = append(still, lastSeen)
		}
	}
	a.gone = still
	return n + int64(len(a.gone))
}
