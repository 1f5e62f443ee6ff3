package subject

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/internal/keys"
)

var (
	//go:embed record.lua
	recordSource string // a copy of the product's
	recordScript = redis.NewScript(recordSource)
)

var (
	errNotRecorded = errors.New("not recorded")
	errNotMeasured = errors.New("not measured")
)

const (
	anyNumber = 0 // of viewers in a video
	notAsked  = 0 // who has just started
)

// oneCall runs the product's script once for every play. It leaves out what
// the measured plays do not need: setting the count of a new video.
type oneCall struct {
	rdb  redis.UniversalClient
	keys keys.Keys
}

func (o oneCall) Play(ctx context.Context, videoID, viewerID string) (int64, error) {
	if err := errors.Join(keys.CheckVideoID(videoID), keys.CheckViewerID(viewerID)); err != nil {
		return 0, err
	}
	ttl := strconv.FormatInt(int64(dataset.KeyTTL/time.Second), 10)
	reply, err := recordScript.Run(ctx, o.rdb, []string{o.keys.Online(videoID)}, ttl, anyNumber, notAsked, viewerID).Int64Slice()
	if err != nil {
		return 0, err
	}
	if len(reply) == 0 {
		return 0, errNotRecorded
	}
	return reply[0], nil
}

func (o oneCall) Resume(context.Context, string, string) (int64, error) { return 0, errNotMeasured }

func (o oneCall) PlayAll(ctx context.Context, videoIDs, viewerIDs []string) (at int64, errs []error) {
	errs = make([]error, len(videoIDs))
	for i := range videoIDs {
		at, errs[i] = o.Play(ctx, videoIDs[i], viewerIDs[i])
	}
	return at, errs
}

func (o oneCall) Leave(context.Context, string, string, int64) error { return errNotMeasured }

// noRedis records nothing.
type noRedis struct{}

func (noRedis) Play(context.Context, string, string) (int64, error) { return 1_700_000_000, nil }

func (noRedis) Resume(context.Context, string, string) (int64, error) { return 1_700_000_000, nil }

func (noRedis) PlayAll(_ context.Context, videoIDs, _ []string) (int64, []error) {
	return 1_700_000_000, make([]error, len(videoIDs))
}

func (noRedis) Leave(context.Context, string, string, int64) error { return nil }
