package stats

import (
	"context"
	"fmt"
	"time"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
)

// Uniques is how many different viewers a video, or the site, had in some hours:
// a HyperLogLog for each hour, which Redis unites when it is asked. Its standard
// error is 0.81 %, and it takes 12 KiB at the most, however many viewers it has seen.
type Uniques struct{ *Store }

const (
	uniquesTTL   = 8 * 24 * time.Hour
	uniquesHours = 168 // that may be asked for
	uniquesDays  = 7

	// costly is the number of hours that Redis unites in more than a moment:
	// some 26 µs each when many watched. Such an answer is given for longer.
	costly = 48
)

// NewUniques returns the statistic.
func NewUniques(s *Store) *Uniques { return &Uniques{s} }

// Watched notes that viewers, at most 2,000, watched a video now, by Redis's
// clock. The empty id stands for any video. These are no script: there is one for
// each video of each batch of plays, and entering Lua costs more than both.
func (u *Uniques) Watched(now time.Time, videoID string, viewers []any) []*redisclient.ScriptCall {
	key := u.o.Keys.Uniques(videoID, now.In(u.o.Zone).Format(hourText))
	return []*redisclient.ScriptCall{
		{Key: key, Args: append([]any{"pfadd", key}, viewers...)},
		{Key: key, Args: []any{"expire", key, int64(uniquesTTL / time.Second)}},
	}
}

// uniquesCount is an answer of Count.
type uniquesCount struct {
	viewers  int64
	from, to time.Time
}

// Count returns how many different viewers a video, or with the empty id the
// site, had between from and to, which is now: in the last hours, the current one
// included, or days, today included. lastText is such as "3h" or "7d"; "" is 24h.
//
// Errors: *keys.IDError, *InputError, ctx's, or Redis's.
func (u *Uniques) Count(ctx context.Context, videoID, lastText string) (viewers int64, from, to time.Time, err error) {
	if err := checkVideo(videoID); err != nil {
		return 0, time.Time{}, time.Time{}, err
	}
	l, err := parseLast(lastText, "24h", uniquesHours, uniquesDays)
	if err != nil {
		return 0, time.Time{}, time.Time{}, err
	}
	fresh := u.o.Cache
	if fresh > 0 && l.hours() > costly {
		fresh = longest
	}
	question := fmt.Sprint(nameUniques, "\n", l, "\n", videoID)
	c, err := ask(ctx, u.Store, question, fresh, func(ctx context.Context) (uniquesCount, error) {
		return u.count(ctx, videoID, l)
	})
	return c.viewers, c.from, c.to, err
}

func (u *Uniques) count(ctx context.Context, videoID string, l last) (uniquesCount, error) {
	now, err := u.now(ctx)
	if err != nil {
		return uniquesCount{}, err
	}
	c := uniquesCount{from: l.from(now), to: now}
	var names []string
	for _, t := range hoursOf(c.from, now) {
		names = append(names, u.o.Keys.Uniques(videoID, t.Format(hourText)))
	}
	if c.viewers, err = u.rdb.PFCount(ctx, names...).Result(); err != nil {
		return uniquesCount{}, fmt.Errorf("stats: count uniques: %w", err)
	}
	return c, nil
}

// checkVideo is keys.CheckVideoID, for whom the empty id is the site.
func checkVideo(videoID string) error {
	if videoID == "" {
		return nil
	}
	return keys.CheckVideoID(videoID)
}
