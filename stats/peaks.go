package stats

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/counts"
	"headcount/internal/redisclient"
)

var (
	//go:embed peak.lua
	peakSource string
	peakScript = redis.NewScript(peakSource)
)

// Peaks are the largest counts that passes have found of a video, and of the site:
// today's and that of all time. They live in a hash for each, which goes when
// nobody has watched for 400 days.
type Peaks struct {
	*Store
	looked atomic.Pointer[string] // the day for which each video was looked at
}

const peakTTL = 400 * 24 * time.Hour

// NewPeaks returns the statistic.
func NewPeaks(s *Store) *Peaks { return &Peaks{Store: s} }

// newDay reports whether a day has begun since it was asked last, or lookAgain was
// called, so that peaks are to be compared with counts that did not rise.
func (p *Peaks) newDay(now time.Time) bool {
	today := now.In(p.o.Zone).Format(dayText)
	last := p.looked.Swap(&today)
	return last == nil || *last != today
}

// lookAgain has newDay report one: some peaks may have been missed.
func (p *Peaks) lookAgain() { p.looked.Store(nil) }

// raise raises the peaks of videos to their counts at now; the empty id is the
// site's. It reads them first: a new worker looks at all, and few are to be raised. The
// script compares once more.
func (p *Peaks) raise(ctx context.Context, now time.Time, videos []counts.Count) error {
	today := now.In(p.o.Zone).Format(dayText)
	pipe := p.rdb.Pipeline()
	stored := make([]*redis.SliceCmd, len(videos))
	for i, v := range videos {
		stored[i] = pipe.HMGet(ctx, p.o.Keys.Peak(v.VideoID), "day", "today", "ever")
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	var failed error
	var calls []*redisclient.ScriptCall
	for i, v := range videos {
		old, err := stored[i].Result()
		switch {
		case err != nil:
			failed = cmp.Or(failed, err)
		case old[0] != today, v.Viewers > amount(old[1]), v.Viewers > amount(old[2]):
			calls = append(calls, &redisclient.ScriptCall{
				Script: peakScript,
				Key:    p.o.Keys.Peak(v.VideoID),
				Args:   []any{v.Viewers, now.Unix(), today, int64(peakTTL / time.Second)},
			})
		}
	}
	redisclient.RunScripts(ctx, p.rdb, calls)
	for _, c := range calls {
		failed = cmp.Or(failed, c.Reply.Err())
	}
	return failed
}

// peaks is an answer of Get.
type peaks struct {
	today, ever     int64
	todayAt, everAt time.Time
}

// Get returns a video's peaks, or with the empty id the site's, and when they were
// reached. What is not known is 0, at the zero time.
//
// Errors: *keys.IDError, ctx's, or Redis's.
func (p *Peaks) Get(ctx context.Context, videoID string) (today int64, todayAt time.Time, ever int64, everAt time.Time, err error) {
	if err := checkVideo(videoID); err != nil {
		return 0, time.Time{}, 0, time.Time{}, err
	}
	a, err := ask(ctx, p.Store, namePeaks+"\n"+videoID, p.o.Cache, func(ctx context.Context) (peaks, error) {
		return p.get(ctx, videoID)
	})
	return a.today, a.todayAt, a.ever, a.everAt, err
}

func (p *Peaks) get(ctx context.Context, videoID string) (a peaks, err error) {
	pipe := p.rdb.Pipeline()
	now := pipe.Time(ctx)
	fields := pipe.HMGet(ctx, p.o.Keys.Peak(videoID), "day", "today", "today_at", "ever", "ever_at")
	if _, err := pipe.Exec(ctx); err != nil {
		return peaks{}, fmt.Errorf("stats: read peaks: %w", err)
	}
	values := fields.Val()
	if values[0] == now.Val().In(p.o.Zone).Format(dayText) {
		a.today, a.todayAt = amount(values[1]), unix(values[2])
	}
	a.ever, a.everAt = amount(values[3]), unix(values[4])
	return a, nil
}

// unix is the time in an answer of HMGET; the zero time if there is none.
func unix(value any) time.Time {
	text, _ := value.(string)
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds > 0 {
		return time.Unix(seconds, 0)
	}
	return time.Time{}
}
