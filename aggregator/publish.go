package aggregator

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/counts"
	"headcount/internal/keys"
)

// asked is what a pipeline was asked about a video besides its hash's content.
type asked struct {
	ttl      *redis.DurationCmd // nil: not asked
	countTTL *redis.DurationCmd // nil: not asked
	count    func() (string, error)
}

// askCounts queues the questions for the count keys of all these videos.
func (s *sweep) askCounts(ctx context.Context, pipe redis.Pipeliner, batch []*reading) {
	if len(batch) == 0 {
		return
	}
	videos := make([]string, len(batch))
	for i, r := range batch {
		videos[i] = r.video
		if !s.allTTL || r.index == nowhere {
			r.asked.countTTL = pipe.TTL(ctx, s.o.Keys.Count(r.video))
		}
	}
	published := counts.Get(ctx, s.rdb, pipe, s.o.Keys, videos)
	for i, r := range batch {
		r.asked.count = func() (string, error) { return published(i) }
	}
}

// takeCount takes the answers in.
func (s *sweep) takeCount(r *reading) (err error) {
	r.published, err = r.asked.count()
	if r.asked.ttl != nil {
		r.ttl = r.asked.ttl.Val()
		err = errors.Join(err, r.asked.ttl.Err())
	}
	if r.asked.countTTL != nil {
		r.countTTL = r.asked.countTTL.Val()
		err = errors.Join(err, r.asked.countTTL.Err())
	}
	r.asked = asked{}
	return err
}

// check counts hashes by their length, in one round trip, evicts the suspects who
// are stale, and publishes what has changed. It returns the videos that
// must be read after all.
func (s *sweep) check(ctx context.Context, batch []*reading) (again []*reading) {
	batch = s.reachable(ctx, batch)
	if len(batch) == 0 {
		return nil
	}
	pipes := make(pipelines)
	pipe := pipes.of(s.rdb)
	for _, r := range batch {
		r.size = pipe.HLen(ctx, r.key)
		if !s.allTTL {
			r.asked.ttl = pipe.TTL(ctx, r.key)
		}
	}
	s.askCounts(ctx, pipe, batch)
	s.exec(ctx, pipes)

	var counted []*reading
	for _, r := range batch {
		length, err := r.size.Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			s.notHash(r) // any more
			err = nil
		}
		if err == nil {
			err = s.takeCount(r)
		}
		if err != nil {
			s.fail(r, "read", err)
			continue
		}
		r.viewers, r.gone = length, length == 0
		if r.gone || !r.checked {
			counted = append(counted, r)
		}
	}
	s.evict(ctx, counted)
	counted = slices.DeleteFunc(counted, func(r *reading) bool { return r.dropped })
	for _, r := range counted {
		if !r.gone {
			s.sum.Skipped++
		}
	}
	return s.publish(ctx, counted)
}

// writes are the commands that publish one video.
type writes struct {
	set      *redis.StatusCmd // the count
	hash     *redis.IntCmd    // length of a hash that was gone, once its count was set to 0
	ttl      *redis.BoolCmd   // of the hash
	countTTL *redis.BoolCmd   // of a count that needs no other change
}

// publish writes the counts of hashes that were read to their end, as far as
// they are not what they should be, and mends TTLs. It returns the videos that
// must be read again: their hash was gone, and was made again while the count was
// set to 0, so that it may now hide what a recorder has just published.
func (s *sweep) publish(ctx context.Context, finished []*reading) (again []*reading) {
	pipe, after := s.rdb.Pipeline(), s.rdb.Pipeline()
	queued := make([]writes, len(finished))
	for i, r := range finished {
		queued[i] = s.queue(ctx, pipe, after, r)
	}
	s.beforeWrites()
	s.exec(ctx, pipelines{s.rdb: pipe})
	// A cluster may keep the hash and the count apart, so one pipeline has no order.
	s.exec(ctx, pipelines{s.rdb: after})
	var found []counts.Count
	for i, r := range finished {
		w, rose := queued[i], r.viewers > r.high
		s.settle(r, w)
		if s.observer != nil && !r.dropped && r.viewers > 0 && keys.CheckVideoID(r.video) == nil {
			found = append(found, counts.Count{VideoID: r.video, Viewers: r.viewers, Rose: rose})
		}
		if w.hash != nil && w.hash.Val() > 0 {
			again = append(again, &reading{video: r.video, key: r.key, sight: sight{index: r.index, fingerprint: r.fingerprint}})
		}
	}
	if len(found) > 0 {
		s.beforeWrites()
		if ctx.Err() == nil {
			s.observer.Counted(ctx, found)
		}
	}
	return again
}

// queue decides what must be written for one video, and what asked afterwards.
func (s *sweep) queue(ctx context.Context, pipe, after redis.Pipeliner, r *reading) (w writes) {
	switch {
	case !r.gone && (r.published != strconv.FormatInt(r.viewers, 10) || s.mustRenew(r)):
		w.set = s.counts.Set(ctx, pipe, r.video, r.viewers)
		r.renew = s.now.Add(s.o.CountTTL / 2).Unix()
	case !r.gone: // the count is right
	case r.published != "0" && (r.published != "" || r.isCount):
		w.set = s.counts.Replace(ctx, pipe, r.video, 0)
		w.hash = after.HLen(ctx, r.key)
	case r.published == "0" && r.countTTL == noTTL:
		// Otherwise a 0 is left to expire, or it would live as long as Redis does.
		w.countTTL = pipe.Expire(ctx, s.o.Keys.Count(r.video), s.o.CountTTL)
	}
	if r.viewers > 0 && s.ttlTooShort(r) {
		w.ttl = pipe.Expire(ctx, r.key, s.o.KeyTTL)
	}
	return w
}

// mustRenew reports whether a count that is right must be written nevertheless,
// so that it does not expire.
func (s *sweep) mustRenew(r *reading) bool {
	if r.countTTL == noTTL {
		return true
	}
	if r.index == nowhere { // nobody remembers when it was written
		return r.countTTL < s.o.CountTTL/2
	}
	if r.renew == 0 {
		r.renew = s.trust.renewAt(s.now.Unix())
	}
	return r.renew <= s.now.Unix()
}

// ttlTooShort reports whether the hash could be gone before it is read again,
// or soon after: another program may add viewers without EXPIRE, or with a short
// one. Our own plays never leave it that short.
func (s *sweep) ttlTooShort(r *reading) bool {
	margin := (s.o.KeyTTL - s.window) / 2
	if r.ttl == noTTL || r.ttl == 0 { // 0: not asked
		return r.ttl == noTTL
	}
	var reread int64
	switch {
	case r.oldest == 0: // not read now
		reread = r.due
	case len(r.list) > 0:
		reread = s.rereadAt()
	default:
		reread = s.dueAfter(r)
	}
	return s.now.Add(r.ttl).Before(time.Unix(reread, 0).Add(margin))
}

// dueAfter is when somebody in the hash can be stale at the earliest, Unix
// seconds: who is in it now, or whom a slow clock writes into it from now on.
func (s *sweep) dueAfter(r *reading) int64 {
	return min(r.oldest, s.now.Add(-behind).Unix()) + int64(s.window/time.Second)
}

// settle takes in how the writes went, and what to remember.
func (s *sweep) settle(r *reading, w writes) {
	if w.set != nil {
		switch err := counts.Err(w.set); {
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			s.skip(s.o.Keys.Count(r.video))
			r.renew = 0
		case err != nil:
			s.fail(r, "publish", err)
			r.renew = s.now.Unix()
		}
	}
	for _, healed := range []*redis.BoolCmd{w.ttl, w.countTTL} {
		if healed == nil {
			continue
		}
		if err := healed.Err(); err != nil {
			s.fail(r, "set a TTL", err)
		} else if healed.Val() {
			s.sum.Healed++
		}
	}
	if s.memory != nil {
		s.remember(r)
	}
	if !r.dropped && r.viewers > 0 {
		s.sum.Videos++
		s.sum.Viewers += r.viewers
	}
}

func (s *sweep) remember(r *reading) {
	if !r.dropped {
		r.high = max(r.high, r.viewers)
	}
	switch {
	case r.dropped || r.viewers == 0:
		r.due, r.suspects = 0, suspects{}
	case len(r.list) > 0:
		r.suspects = pack(r.list, s.rereadAt())
		r.due = r.suspects.next(s.window)
	case r.oldest != 0:
		r.due, r.suspects = s.dueAfter(r), suspects{}
	}
	s.memory.keep(r.sight, r.due, r.renew, r.viewers >= smallSize)
}
