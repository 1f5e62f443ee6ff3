package stats

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/counts"
	"headcount/internal/redisclient"
)

var (
	//go:embed history.lua
	historySource string
	historyScript = redis.NewScript(historySource)
)

// History is the counts of passes over some time: of the site, by every complete
// pass, and of the videos that were among the 100 largest then. They live in a
// stream for each, whose ids are the times of the passes in milliseconds.
type History struct {
	*Store
	kept time.Duration
	last atomic.Int64 // when points were added last, Unix milliseconds
}

const (
	historyVideos = 100

	// mostPoints bounds a stream, however often there is a pass: one that comes
	// too soon after the last adds nothing. Every 30 s, there are 2,880 in a day.
	mostPoints = 3000

	historyPage = 1000 // points that one command reads
)

// NewHistory returns the statistic of that long a time, in whole seconds.
func NewHistory(s *Store, kept time.Duration) *History { return &History{Store: s, kept: kept} }

// add adds the counts of a pass: videos' and, with the empty id, the site's.
func (h *History) add(ctx context.Context, at time.Time, videos []counts.Count) error {
	if last := h.last.Load(); at.UnixMilli() > last && at.UnixMilli()-last < h.kept.Milliseconds()/mostPoints {
		return nil
	}
	calls := make([]*redisclient.ScriptCall, len(videos))
	for i, v := range videos {
		calls[i] = &redisclient.ScriptCall{
			Script: historyScript,
			Key:    h.o.Keys.History(v.VideoID),
			Args:   []any{at.UnixMilli(), v.Viewers, int64(h.kept / time.Second)},
		}
	}
	redisclient.RunScripts(ctx, h.rdb, calls)
	for _, c := range calls {
		if err := c.Reply.Err(); err != nil {
			return err
		}
	}
	h.last.Store(at.UnixMilli())
	return nil
}

// points are an answer of Points.
type points struct {
	at      []time.Time
	viewers []int64
}

// Points returns the counts of a video, or with the empty id of the site, in the
// last hours or days, the oldest first. Of a time when the video was not among the
// 100 largest, there are none. lastText is such as "6h" or "1d", up to what
// is kept; "" is all of that.
//
// Errors: *keys.IDError, *InputError, ctx's, or Redis's.
func (h *History) Points(ctx context.Context, videoID, lastText string) (at []time.Time, viewers []int64, err error) {
	if err := checkVideo(videoID); err != nil {
		return nil, nil, err
	}
	hours := int((h.kept + time.Hour - 1) / time.Hour)
	l, err := parseLast(lastText, strconv.Itoa(hours)+"h", hours, hours/24)
	if err != nil {
		return nil, nil, err
	}
	question := fmt.Sprint(nameHistory, "\n", l.hours(), "\n", videoID)
	p, err := ask(ctx, h.Store, question, h.o.Cache, func(ctx context.Context) (points, error) {
		return h.points(ctx, videoID, time.Duration(l.hours())*time.Hour)
	})
	return p.at, p.viewers, err
}

func (h *History) points(ctx context.Context, videoID string, span time.Duration) (p points, err error) {
	now, err := h.now(ctx)
	if err != nil {
		return points{}, err
	}
	from := strconv.FormatInt(now.Add(-span).UnixMilli(), 10)
	for {
		page, err := h.rdb.XRangeN(ctx, h.o.Keys.History(videoID), from, "+", historyPage).Result()
		if err != nil {
			return points{}, fmt.Errorf("stats: read history: %w", err)
		}
		for _, m := range page {
			text, _, _ := strings.Cut(m.ID, "-")
			at, _ := strconv.ParseInt(text, 10, 64) // as Redis has made sure
			p.at, p.viewers = append(p.at, time.UnixMilli(at)), append(p.viewers, amount(m.Values["viewers"]))
		}
		if len(page) < historyPage {
			return p, nil
		}
		from = "(" + page[len(page)-1].ID
	}
}
