package stats

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/counts"
)

// Passes has the statistics that passes write or trim. Those that are off are nil.
type Passes struct {
	Online  *Online // is trimmed
	Plays   *Plays  // likewise
	Top     *Top
	Peaks   *Peaks
	History *History

	KeyTTL   time.Duration // of the last-pass hash; whole seconds
	Failures *Failures
}

// Pass takes in what one pass finds.
type Pass struct {
	*Passes
	now     time.Time // when it began
	anew    bool
	largest largest
	broken  atomic.Bool // peaks could not be written
}

// Begin is called when a pass begins, at now by Redis's clock. Passes of one
// worker follow each other.
func (p *Passes) Begin(now time.Time) *Pass {
	pass := &Pass{Passes: p, now: now}
	pass.anew = p.Peaks != nil && p.Peaks.newDay(now)
	if p.Top != nil {
		pass.largest.size = p.Top.size
	}
	if p.History != nil {
		pass.largest.size = max(pass.largest.size, historyVideos)
	}
	return pass
}

// Anew reports whether every count is to be told as one that rose.
func (p *Pass) Anew() bool { return p.anew }

// Counted takes in the counts of some videos. It may be called from several
// goroutines.
func (p *Pass) Counted(ctx context.Context, videos []counts.Count) {
	var rose []counts.Count
	for _, v := range videos {
		p.largest.add(v)
		if v.Rose {
			rose = append(rose, v)
		}
	}
	if len(rose) > 0 {
		p.raise(ctx, rose)
	}
}

// raise raises peaks. After a server that does not answer, the others wait for the
// next pass: each batch would wait for it again.
func (p *Pass) raise(ctx context.Context, videos []counts.Count) {
	if p.Peaks == nil || p.broken.Load() {
		return
	}
	err := p.Peaks.raise(ctx, p.now, videos)
	if err == nil {
		return
	}
	p.Peaks.lookAgain()
	p.Failures.Note(namePeaks, err)
	if _, answered := errors.AsType[redis.Error](err); !answered {
		p.broken.Store(true)
	}
}

// Over is called when the pass is over, at that time by Redis's clock. viewers is
// how many there are of all videos, if it is complete.
func (p *Pass) Over(ctx context.Context, at time.Time, viewers int64, complete bool) {
	if p.Online != nil {
		p.note(nameOnline, p.Online.trim(ctx))
	}
	if !complete {
		return
	}
	site := counts.Count{Viewers: viewers}
	largest := p.largest.sorted()
	if p.Top != nil {
		p.note(nameTop, p.Top.replace(ctx, largest))
	}
	if p.Peaks != nil && viewers > 0 {
		p.raise(ctx, []counts.Count{site})
	}
	if p.History != nil {
		p.note(nameHistory, p.History.add(ctx, at, append(largest[:min(historyVideos, len(largest))], site)))
	}
	if p.Plays != nil {
		p.note(namePlays, p.Plays.trim(ctx, at, p.KeyTTL))
	}
}

func (p *Pass) note(statistic string, err error) {
	if err != nil {
		p.Failures.Note(statistic, err)
	}
}
