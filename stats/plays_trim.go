package stats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

// Fields of the last-pass hash: when the last trimming of plays was over, Unix
// seconds, and where one that is under way goes on: "host:port cursor".
const (
	fieldTrimmedAt = "plays_trimmed_at"
	fieldTrimNext  = "plays_trim_next"
)

const (
	trimEvery = 24 * time.Hour
	trimPages = 100  // that one pass scans at the most
	trimCount = 1000 // keys of a page, and fields of a page of a hash, roughly

	hoursKept = 8 * 24 * time.Hour
	daysKept  = 400 // days
)

// trim removes, once a day, what is too old from all hashes of plays: hours, days,
// and the marks of writers. It goes through them over as many passes as it takes,
// and keeps where it is in Redis, for whichever worker makes the next.
func (p *Plays) trim(ctx context.Context, now time.Time, ttl time.Duration) error {
	state, err := p.rdb.HMGet(ctx, p.o.Keys.LastPass(), fieldTrimmedAt, fieldTrimNext).Result()
	if err != nil || now.Sub(unix(state[0])) < trimEvery {
		return err
	}
	place, _ := state[1].(string)
	next, err := p.sweepPages(ctx, now, place, trimPages)
	if err != nil {
		return err
	}
	pipe := p.rdb.Pipeline()
	if next == "" {
		pipe.HSet(ctx, p.o.Keys.LastPass(), fieldTrimmedAt, now.Unix())
		pipe.HDel(ctx, p.o.Keys.LastPass(), fieldTrimNext)
	} else {
		pipe.HSet(ctx, p.o.Keys.LastPass(), fieldTrimNext, next)
	}
	pipe.Expire(ctx, p.o.Keys.LastPass(), ttl) // it may just have expired
	_, err = pipe.Exec(ctx)
	return err
}

// sweepPages goes on at a place, "" for the beginning, for as many pages, and
// returns where it stopped, "" for the end.
func (p *Plays) sweepPages(ctx context.Context, now time.Time, place string, most int) (next string, err error) {
	nodes, err := redisclient.Masters(ctx, p.rdb)
	if err != nil {
		return place, err
	}
	slices.SortFunc(nodes, func(a, b redis.UniversalClient) int {
		return cmp.Compare(redisclient.Address(a), redisclient.Address(b))
	})
	from, at, _ := strings.Cut(place, " ")
	cursor, _ := strconv.ParseUint(at, 10, 64) // a bad one is as good as any
	pages := 0
	for _, node := range nodes {
		if redisclient.Address(node) < from {
			continue
		}
		if redisclient.Address(node) > from {
			cursor = 0
		}
		for {
			if pages++; pages > most {
				return fmt.Sprint(redisclient.Address(node), " ", cursor), nil
			}
			var names []string
			if names, cursor, err = node.Scan(ctx, cursor, p.o.Keys.PlaysPattern(), trimCount).Result(); err != nil {
				return place, err
			}
			if err := p.trimAll(ctx, now, names); err != nil {
				return place, err
			}
			if cursor == 0 {
				break
			}
		}
	}
	return "", nil
}

// hashScan is a hash of plays, read in pages.
type hashScan struct {
	key    string
	cursor uint64
	page   *redis.ScanCmd
}

// trimAll removes what is too old from these hashes, whose pages travel together.
func (p *Plays) trimAll(ctx context.Context, now time.Time, names []string) error {
	open := make([]*hashScan, len(names))
	for i, name := range names {
		open[i] = &hashScan{key: name}
	}
	var failed error
	for len(open) > 0 {
		pipe := p.rdb.Pipeline()
		for _, h := range open {
			h.page = pipe.HScan(ctx, h.key, h.cursor, "", trimCount)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		removal := p.rdb.Pipeline()
		var rest []*hashScan
		for _, h := range open {
			fields, cursor, err := h.page.Result()
			if err != nil {
				failed = cmp.Or(failed, err)
				continue
			}
			if old := p.tooOld(now, fields); len(old) > 0 {
				removal.HDel(ctx, h.key, old...)
			}
			if h.cursor = cursor; cursor != 0 {
				rest = append(rest, h)
			}
		}
		if _, err := removal.Exec(ctx); err != nil {
			failed = cmp.Or(failed, err)
		}
		open = rest
	}
	if redis.HasErrorPrefix(failed, "WRONGTYPE") || errors.Is(failed, redis.Nil) {
		return nil // not ours, and no reason to begin anew for ever
	}
	return failed
}

// tooOld picks the fields that are not kept any longer out of a page of fields
// and values.
func (p *Plays) tooOld(now time.Time, page []string) (old []string) {
	now = now.In(p.o.Zone)
	firstHour := fieldHour + now.Add(-hoursKept).Format(hourText)
	firstDay := fieldDay + day(now, -daysKept).Format(dayText)
	firstMark := now.Add(-markAge).UnixMicro()
	for i := 0; i+1 < len(page); i += 2 {
		field, mark := page[i], amount(page[i+1])
		if strings.HasPrefix(field, fieldHour) && field < firstHour ||
			strings.HasPrefix(field, fieldDay) && field < firstDay ||
			strings.HasPrefix(field, fieldWriter) && mark < firstMark {
			old = append(old, field)
		}
	}
	return old
}
