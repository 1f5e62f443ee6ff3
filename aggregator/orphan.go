package aggregator

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// zeroOrphans sets the counts whose hash is gone to 0. A count that is 0
// already is left to expire, or it would live as long as Redis does. It returns
// the hashes that were made meanwhile: their count, perhaps just set by a
// recorder, is read again rather than left at our 0.
func (s *sweep) zeroOrphans(ctx context.Context, videos []string) (again []*reading) {
	orphans := s.withoutHash(ctx, videos)
	if len(orphans) == 0 {
		return nil
	}
	toZero, toHeal := s.readCounts(ctx, orphans)
	s.healCounts(ctx, toHeal)
	return s.zero(ctx, toZero)
}

// withoutHash returns the videos that have no hash. A key of another type in
// its place is no hash either.
func (s *sweep) withoutHash(ctx context.Context, videos []string) (orphans []string) {
	pipe := s.a.rdb.Pipeline()
	lengths := make([]*redis.IntCmd, len(videos))
	for i, video := range videos {
		lengths[i] = pipe.HLen(ctx, s.a.o.Keys.Online(video))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error

	for i, video := range videos {
		length, err := lengths[i].Result()
		switch {
		case redis.HasErrorPrefix(err, "WRONGTYPE"), err == nil && length == 0:
			orphans = append(orphans, video)
		case err != nil:
			s.failVideo(video, "look for its hash", err)
		}
	}
	return orphans
}

// readCounts returns whose count is not 0, and whose count is 0 for good.
func (s *sweep) readCounts(ctx context.Context, orphans []string) (toZero, toHeal []string) {
	pipe := s.a.rdb.Pipeline()
	values := make([]*redis.StringCmd, len(orphans))
	ttls := make([]*redis.DurationCmd, len(orphans))
	for i, video := range orphans {
		values[i] = pipe.Get(ctx, s.a.o.Keys.Count(video))
		ttls[i] = pipe.TTL(ctx, s.a.o.Keys.Count(video))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error

	for i, video := range orphans {
		value, err := values[i].Result()
		switch {
		case errors.Is(err, redis.Nil): // it has just expired
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			s.skip(s.a.o.Keys.Count(video))
		case err != nil, ttls[i].Err() != nil:
			s.failVideo(video, "read its count", errors.Join(err, ttls[i].Err()))
		case value != "0":
			toZero = append(toZero, video)
		case ttls[i].Val() == noTTL:
			toHeal = append(toHeal, video)
		}
	}
	return toZero, toHeal
}

// noTTL is go-redis's answer to TTL for a key that never expires.
const noTTL = -1

func (s *sweep) healCounts(ctx context.Context, videos []string) {
	if len(videos) == 0 {
		return
	}
	pipe := s.a.rdb.Pipeline()
	healed := make([]*redis.BoolCmd, len(videos))
	for i, video := range videos {
		healed[i] = pipe.Expire(ctx, s.a.o.Keys.Count(video), s.a.o.CountTTL)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error

	for i, video := range videos {
		if err := healed[i].Err(); err != nil {
			s.failVideo(video, "give its count a TTL", err)
		} else if healed[i].Val() {
			s.sum.Healed++
		}
	}
}

// zero sets counts to 0 and looks for the hashes once more, after: whoever made
// one before that look is read again, and whoever makes one later sets the
// count after us.
func (s *sweep) zero(ctx context.Context, videos []string) (again []*reading) {
	if len(videos) == 0 {
		return nil
	}
	pipe := s.a.rdb.Pipeline()
	zeroed := make([]*redis.StatusCmd, len(videos))
	lengths := make([]*redis.IntCmd, len(videos))
	for i, video := range videos {
		zeroed[i] = s.a.counts.Replace(ctx, pipe, video, 0)
		lengths[i] = pipe.HLen(ctx, s.a.o.Keys.Online(video))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error

	for i, video := range videos {
		if err := zeroed[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			s.failVideo(video, "zero its count", err)
		} else if lengths[i].Val() > 0 {
			again = append(again, &reading{video: video, key: s.a.o.Keys.Online(video)})
		}
	}
	return again
}
