package contender

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/bench/internal/server"
)

// Layout is how viewers lie in Redis.
type Layout struct {
	Name string
	// Fill puts the viewers into a server, or back as they were: stale ones
	// included, with times by the server's clock, and counts from an earlier
	// pass, when nobody was stale. It tells tick of every few viewers done.
	Fill func(ctx context.Context, srv *server.Server, set dataset.Set, tick func(viewers int)) error
	// Count is the prefix of the published counts; empty where none are.
	Count string
}

// The layouts of the contenders.
var (
	Hashes        = Layout{Name: "hashes", Fill: fillHashes, Count: productKeys().Count("")}
	SortedSets    = Layout{Name: "sorted sets", Fill: fillSortedSets, Count: zsetCount}
	Presence      = Layout{Name: "presence", Fill: fillPresence(false)}
	PresenceUsers = Layout{Name: "presence with users", Fill: fillPresence(true)}
)

// fillBatch is how many viewers are written in one command, and in one pipeline.
const fillBatch, fillPipeline = 500, 10_000

// seen is some viewers of one video.
type seen struct {
	video string
	ids   []string
	at    []int64 // Unix seconds
	last  bool    // there are no more of this video
}

// fill walks over the dataset and has write queue the commands.
func fill(ctx context.Context, srv *server.Server, set dataset.Set, tick func(int), write func(redis.Pipeliner, seen)) error {
	now, err := srv.Admin.Time(ctx).Result()
	if err != nil {
		return err
	}
	pipe := srv.Admin.Pipeline()
	queued := 0
	flush := func() error {
		err := exec(ctx, pipe)
		tick(queued)
		queued = 0
		return err
	}
	for video := range set.Videos {
		for from := 0; from < set.Viewers; from += fillBatch {
			s := some(set, now, video, from, min(from+fillBatch, set.Viewers))
			write(pipe, s)
			if queued += len(s.ids); queued >= fillPipeline {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

func some(set dataset.Set, now time.Time, video, from, to int) seen {
	s := seen{video: set.VideoID(video), last: to == set.Viewers}
	for viewer := from; viewer < to; viewer++ {
		s.ids = append(s.ids, set.ViewerID(video, viewer))
		s.at = append(s.at, set.LastSeen(now, video, viewer))
	}
	return s
}

func fillHashes(ctx context.Context, srv *server.Server, set dataset.Set, tick func(int)) error {
	k := productKeys()
	return fill(ctx, srv, set, tick, func(pipe redis.Pipeliner, s seen) {
		args := []any{"HSET", k.Online(s.video)}
		for i, id := range s.ids {
			args = append(args, id, strconv.FormatInt(s.at[i], 10))
		}
		pipe.Do(ctx, args...)
		if s.last {
			pipe.Expire(ctx, k.Online(s.video), dataset.KeyTTL)
			pipe.Set(ctx, k.Count(s.video), set.Viewers, dataset.CountTTL)
		}
	})
}

func fillSortedSets(ctx context.Context, srv *server.Server, set dataset.Set, tick func(int)) error {
	return fill(ctx, srv, set, tick, func(pipe redis.Pipeliner, s seen) {
		members := make([]redis.Z, len(s.ids))
		for i, id := range s.ids {
			members[i] = redis.Z{Score: float64(s.at[i]), Member: id}
		}
		pipe.ZAdd(ctx, zsetOnline+s.video, members...)
		if s.last {
			pipe.Expire(ctx, zsetOnline+s.video, dataset.KeyTTL)
			pipe.Set(ctx, zsetCount+s.video, set.Viewers, dataset.CountTTL)
		}
	})
}

// fillPresence adds stale viewers with the shortest TTL there is, so that they
// have expired a moment later, and only then the others: they renew the TTL of
// the channel's keys.
func fillPresence(users bool) func(context.Context, *server.Server, dataset.Set, func(int)) error {
	return func(ctx context.Context, srv *server.Server, set dataset.Set, tick func(int)) error {
		const shortest = time.Second
		stale, err := newPresence(srv.Addr, set, users, shortest)
		if err != nil {
			return err
		}
		defer func() { _ = stale.Close() }()
		fresh, err := newPresence(srv.Addr, set, users, dataset.Window)
		if err != nil {
			return err
		}
		defer func() { _ = fresh.Close() }()

		err = fresh.each(ctx, func(video int) error {
			defer tick(set.Viewers)
			return addAll(stale, fresh, video)
		})
		if err != nil {
			return err
		}
		return pause(ctx, shortest+shortest/20)
	}
}

func addAll(stale, fresh *presence, video int) error {
	for _, p := range []*presence{stale, fresh} {
		for viewer := range p.set.Viewers {
			if p.set.Stale(video, viewer) != (p == stale) {
				continue
			}
			if err := p.add(video, viewer); err != nil {
				return err
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Published is the sum of the published counts of all videos.
func (l Layout) Published(ctx context.Context, srv *server.Server, set dataset.Set) (int64, error) {
	var sum int64
	const batch = 1000
	for from := 0; from < set.Videos; from += batch {
		pipe := srv.Admin.Pipeline()
		var counts []*redis.StringCmd
		for video := from; video < min(from+batch, set.Videos); video++ {
			counts = append(counts, pipe.Get(ctx, l.Count+set.VideoID(video)))
		}
		if err := exec(ctx, pipe); err != nil {
			return 0, err
		}
		for _, c := range counts {
			count, _ := c.Int64() // a video without a count has none
			sum += count
		}
	}
	return sum, nil
}
