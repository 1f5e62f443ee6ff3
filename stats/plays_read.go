package stats

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// What may be asked for of plays: hours and days as long as they are kept, when
// the first week or month is whole.
const (
	playsHours    = 168
	playsHourDays = 7
	playsDays     = 366
)

// playsCount is an answer of Count.
type playsCount struct {
	total int64
	from  []time.Time
	plays []int64
}

// Count returns how often a video, or with the empty id any video, was started in
// all, and in each period of the last hours or days: from[i] is when the i-th
// began, the current one included, and whole weeks and months from the first one on. per
// is "hour", "day", "week" (from Monday on) or "month"; "" is day. lastText is
// such as "24h", for hours alone, or "30d"; "" is 24h for hours, else 30d.
//
// Errors: *keys.IDError, *InputError, ctx's, or Redis's.
func (p *Plays) Count(ctx context.Context, videoID, per, lastText string) (total int64, from []time.Time, plays []int64, err error) {
	if err := checkVideo(videoID); err != nil {
		return 0, nil, nil, err
	}
	var l last
	switch per {
	case "hour":
		l, err = parseLast(lastText, "24h", playsHours, playsHourDays)
	case "", "day", "week", "month":
		l, err = parseLast(lastText, "30d", 0, playsDays)
	default:
		err = &InputError{"per", "must be hour, day, week or month"}
	}
	if err != nil {
		return 0, nil, nil, err
	}
	question := fmt.Sprint(namePlays, "\n", per, "\n", l, "\n", videoID)
	c, err := ask(ctx, p.Store, question, p.o.Cache, func(ctx context.Context) (playsCount, error) {
		return p.count(ctx, videoID, per, l)
	})
	return c.total, c.from, c.plays, err
}

// Total is how often a video was started in all.
func (p *Plays) Total(ctx context.Context, videoID string) (int64, error) {
	total, _, _, err := p.Count(ctx, videoID, "day", "1d")
	return total, err
}

func (p *Plays) count(ctx context.Context, videoID, per string, l last) (playsCount, error) {
	now, err := p.now(ctx)
	if err != nil {
		return playsCount{}, err
	}
	parts, fields := partsOf(per, l.from(now), now)
	fields = append(fields, fieldTotal)
	values, err := p.rdb.HMGet(ctx, p.o.Keys.Plays(videoID), fields...).Result()
	if err != nil {
		return playsCount{}, fmt.Errorf("stats: read plays: %w", err)
	}
	c := playsCount{total: amount(values[len(parts)])}
	for i, t := range parts {
		if start := begin(per, t); len(c.from) == 0 || !start.Equal(c.from[len(c.from)-1]) {
			c.from, c.plays = append(c.from, start), append(c.plays, 0)
		}
		c.plays[len(c.plays)-1] += amount(values[i])
	}
	return c, nil
}

// partsOf lists the hours or days of which the periods from then to now consist,
// from the first period's beginning on, and their fields.
func partsOf(per string, from, now time.Time) (parts []time.Time, fields []string) {
	if per == "hour" {
		for _, t := range hoursOf(from, now) {
			parts, fields = append(parts, t), append(fields, fieldHour+t.Format(hourText))
		}
		return parts, fields
	}
	for _, t := range daysOf(begin(per, from), now) {
		parts, fields = append(parts, t), append(fields, fieldDay+t.Format(dayText))
	}
	return parts, fields
}

// begin is when the period began that the hour or day at t is in.
func begin(per string, t time.Time) time.Time {
	switch per {
	case "week":
		return day(t, -(int(t.Weekday())+6)%7) // Monday is its first day
	case "month":
		return day(t, 1-t.Day())
	}
	return t
}

// amount is the number in an answer of HMGET; whatever is none is 0.
func amount(value any) int64 {
	text, _ := value.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
