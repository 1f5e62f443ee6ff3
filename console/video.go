package console

import (
	"context"
	"strconv"

	"headcount/internal/counts"
)

// video is what the page shows of one video.
type video struct {
	VideoID string         `json:"video_id"`
	Now     *int64         `json:"now"`
	Viewers watching       `json:"viewers"`
	Uniques figure[int64]  `json:"uniques"` // of 24 hours
	Plays   figure[plays]  `json:"plays"`
	Peaks   figure[peaks]  `json:"peaks"`
	History figure[points] `json:"history"`
}

func (c *Console) video(ctx context.Context, id string) *video {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	v := &video{VideoID: id}
	sideBySide(
		func() { v.Now, v.Viewers = c.count(ctx, id) },
		func() { v.Uniques = c.uniques(ctx, id) },
		func() { v.Plays = c.plays(ctx, id) },
		func() { v.Peaks = c.peaks(ctx, id) },
		func() { v.History = c.history(ctx, id) },
	)
	return v
}

// count reads a video's published count. None is 0 where passes are complete.
func (c *Console) count(ctx context.Context, id string) (now *int64, w watching) {
	pipe := c.rdb.Pipeline()
	published := counts.Get(ctx, c.rdb, pipe, c.o.Keys, []string{id})
	clock := pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if clock.Err() == nil {
		now = millis(clock.Val())
	}
	record, _ := c.passes(ctx) // none, where it cannot be read
	w.AsOf = c.knownAsOf(record.CompletedAt, now)
	value, err := published(0)
	n, syntax := strconv.ParseInt(value, 10, 64)
	if err == nil && (syntax == nil || w.AsOf != nil) {
		w.Now = &n
	}
	return now, w
}
