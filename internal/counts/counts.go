// Package counts writes and reads the count keys: the published number of each video's
// viewers.
package counts

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
)

// Writer queues writes of count keys.
type Writer struct {
	Keys keys.Keys
	TTL  time.Duration // a count nobody renews is gone after this, or up to 2 % later
}

// Set queues viewers as the count of a video. Read the outcome with Err.
func (w Writer) Set(ctx context.Context, pipe redis.Pipeliner, videoID string, viewers int64) *redis.StatusCmd {
	return w.set(ctx, pipe, videoID, viewers, "")
}

// Replace is Set for a video that already has a count; it never creates one.
func (w Writer) Replace(ctx context.Context, pipe redis.Pipeliner, videoID string, viewers int64) *redis.StatusCmd {
	return w.set(ctx, pipe, videoID, viewers, "XX")
}

// set asks for the old value: not because it is wanted, but because Redis then
// refuses to overwrite a key of another type, which is not ours to change.
func (w Writer) set(ctx context.Context, pipe redis.Pipeliner, videoID string, viewers int64, mode string) *redis.StatusCmd {
	return pipe.SetArgs(ctx, w.Keys.Count(videoID), viewers, redis.SetArgs{TTL: jitter(w.TTL), Mode: mode, Get: true})
}

// jitter adds up to 2 % so that counts written by one pass do not expire in one
// moment. It only ever adds: a count must outlive the window.
func jitter(ttl time.Duration) time.Duration {
	seconds := int64(ttl / time.Second)
	return time.Duration(seconds+rand.Int64N(seconds/50+1)) * time.Second
}

// Err is the outcome of a queued write: no old value is not an error.
func Err(cmd *redis.StatusCmd) error {
	if err := cmd.Err(); !errors.Is(err, redis.Nil) {
		return err
	}
	return nil
}

// Get queues the question for the counts of all these videos, as one command
// where Redis allows that. Call the function it returns after the pipeline was
// executed: it returns the i-th value, "" where there is none or a key of another
// type.
func Get(ctx context.Context, rdb redis.UniversalClient, pipe redis.Pipeliner, k keys.Keys, videoIDs []string) func(i int) (string, error) {
	names := make([]string, len(videoIDs))
	for i, id := range videoIDs {
		names[i] = k.Count(id)
	}
	if _, cluster := rdb.(*redis.ClusterClient); cluster {
		return getEach(ctx, pipe, names) // keys of several slots cannot share a command
	}
	all := pipe.MGet(ctx, names...)
	return func(i int) (string, error) {
		if err := all.Err(); err != nil {
			return "", err
		}
		value, _ := all.Val()[i].(string)
		return value, nil
	}
}

func getEach(ctx context.Context, pipe redis.Pipeliner, names []string) func(i int) (string, error) {
	each := make([]*redis.StringCmd, len(names))
	for i, name := range names {
		each[i] = pipe.Get(ctx, name)
	}
	return func(i int) (string, error) {
		value, err := each[i].Result()
		if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE") {
			return "", nil
		}
		return value, err
	}
}

// Count is what a pass found of one video.
type Count struct {
	VideoID string
	Viewers int64 // at least 1
	Rose    bool  // there are more than whoever asks was told of before
}
