// Package lastpass keeps what passes found where everybody can read it: a hash
// that tells of the last pass in its fields, and of the last twenty in one of them.
package lastpass

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pass is what one pass found and did. Times are Unix seconds by Redis's clock.
type Pass struct {
	StartedAt  int64  `json:"started_at"`
	FinishedAt int64  `json:"finished_at"`
	TookMS     int64  `json:"took_ms"`
	Videos     int64  `json:"videos"`  // with viewers; of those that could be read
	Viewers    int64  `json:"viewers"` // likewise
	Read       int64  `json:"read"`    // hashes that were read
	Skipped    int64  `json:"skipped"` // hashes that were told by their length
	Evicted    int64  `json:"evicted"` // viewers
	Errors     int64  `json:"errors"`  // 0: it is complete
	Holder     string `json:"holder"`  // who made it

	CountsUntil int64 `json:"-"` // after a complete pass, every count lives until then at least
}

// Record is what the hash tells. What is not in it is zero.
type Record struct {
	Passes       int64     // ever made
	CompletedAt  time.Time // when the last complete pass finished
	LeadingSince time.Time // when the first pass began of those that the holder of the last one has made without another in between
	Recent       []Pass    // the latest first
}

// kept is how many passes the hash tells of.
const kept = 20

// The hash's fields, besides those that say the same as a Pass's.
const (
	fieldPasses       = "passes"
	fieldHolder       = "holder"
	fieldFinishedAt   = "finished_at"  // of the last complete pass: older than started_at after one with errors
	fieldCountsUntil  = "counts_until" // likewise
	fieldLeadingSince = "leading_since"
	fieldRecent       = "recent" // JSON
)

// Write adds a pass to the hash, which then lives for ttl. Repeating it, as the
// client does when an answer is lost, changes nothing.
func Write(ctx context.Context, rdb redis.UniversalClient, key string, ttl time.Duration, p Pass) error {
	before, holder, err := read(ctx, rdb, key)
	if err != nil {
		return err
	}
	since := before.LeadingSince.Unix()
	if holder != p.Holder || before.LeadingSince.IsZero() {
		since = p.StartedAt
	}
	recent, err := json.Marshal(append([]Pass{p}, before.Recent[:min(kept-1, len(before.Recent))]...))
	if err != nil {
		return err
	}
	fields := []any{
		fieldPasses, before.Passes + 1, // not HINCRBY: a repeated command must not count twice
		"started_at", p.StartedAt,
		"took_ms", p.TookMS,
		"videos", p.Videos,
		"viewers", p.Viewers,
		"read", p.Read,
		"skipped", p.Skipped,
		"evicted", p.Evicted,
		"errors", p.Errors,
		fieldHolder, p.Holder,
		fieldLeadingSince, since,
		fieldRecent, recent,
	}
	if p.Errors == 0 {
		fields = append(fields, fieldFinishedAt, p.FinishedAt, fieldCountsUntil, p.CountsUntil)
	}
	_, err = rdb.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, key, fields...)
		pipe.Expire(ctx, key, ttl)
		return nil
	})
	return err
}

// Read reads the hash.
func Read(ctx context.Context, rdb redis.UniversalClient, key string) (Record, error) {
	r, _, err := read(ctx, rdb, key)
	if err != nil {
		return Record{}, fmt.Errorf("lastpass: %w", err)
	}
	return r, nil
}

// read takes what somebody else wrote into the hash, and is no number, for nothing.
func read(ctx context.Context, rdb redis.UniversalClient, key string) (r Record, holder string, err error) {
	values, err := rdb.HMGet(ctx, key, fieldPasses, fieldFinishedAt, fieldLeadingSince, fieldHolder, fieldRecent).Result()
	if err != nil {
		return Record{}, "", err
	}
	text := func(i int) string { s, _ := values[i].(string); return s }
	r.Passes = number(text(0))
	r.CompletedAt, r.LeadingSince = unix(text(1)), unix(text(2))
	if json.Unmarshal([]byte(text(4)), &r.Recent) != nil {
		r.Recent = nil
	}
	return r, text(3), nil
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func unix(text string) time.Time {
	if seconds := number(text); seconds > 0 {
		return time.Unix(seconds, 0)
	}
	return time.Time{}
}
