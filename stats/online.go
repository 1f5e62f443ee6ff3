package stats

import (
	"context"
	_ "embed"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

var (
	//go:embed online.lua
	onlineSource string
	//go:embed online_leave.lua
	onlineLeaveSource string
	//go:embed online_count.lua
	onlineCountSource string
	//go:embed online_trim.lua
	onlineTrimSource string

	onlineScript      = redis.NewScript(onlineSource)
	onlineLeaveScript = redis.NewScript(onlineLeaveSource)
	onlineCountScript = redis.NewScript(onlineCountSource)
	onlineTrimScript  = redis.NewScript(onlineTrimSource)
)

// Online is who is on the site, watching or not: everybody who was seen within
// the window, by a play of any video or by a heartbeat. A viewer of five videos is
// one, and stays when leaving a video. It lives in one sorted set, viewer → last seen.
type Online struct {
	*Store
	ttl    int64 // of the set, seconds
	window atomic.Int64
}

// ahead is how far a time may lie in the future, as when Redis's clock was set
// back, before its viewer counts as gone; seconds.
const ahead = 120

// NewOnline returns the statistic. The set lives for ttl after a write, which is
// at least window; both are whole seconds.
func NewOnline(s *Store, window, ttl time.Duration) *Online {
	o := &Online{Store: s, ttl: int64(ttl / time.Second)}
	o.SetWindow(window)
	return o
}

// SetWindow changes the window. It takes whole seconds.
func (o *Online) SetWindow(window time.Duration) { o.window.Store(int64(window / time.Second)) }

// Seen notes that viewers, of whom there are at most 2,000, are on the site. More
// may be added to the call's Args until it is sent. It replies {now}, in Unix seconds.
func (o *Online) Seen(viewers ...any) *redisclient.ScriptCall {
	return &redisclient.ScriptCall{Script: onlineScript, Key: o.o.Keys.OnlineUsers(), Args: append([]any{o.ttl}, viewers...)}
}

// Left takes a viewer from the site, unless seen after recordedAt, in Unix
// seconds; with 0 in any case.
func (o *Online) Left(viewerID string, recordedAt int64) *redisclient.ScriptCall {
	return &redisclient.ScriptCall{Script: onlineLeaveScript, Key: o.o.Keys.OnlineUsers(), Args: []any{viewerID, recordedAt}}
}

// onlineCount is an answer of Count.
type onlineCount struct {
	online int64
	at     time.Time
}

// Count returns how many are on the site, and when that was so by Redis's clock.
func (o *Online) Count(ctx context.Context) (online int64, at time.Time, err error) {
	c, err := ask(ctx, o.Store, nameOnline, o.o.Cache, o.count)
	return c.online, c.at, err
}

func (o *Online) count(ctx context.Context) (onlineCount, error) {
	nowAndOnline, err := onlineCountScript.Run(ctx, o.rdb, []string{o.o.Keys.OnlineUsers()}, o.window.Load(), ahead).Int64Slice()
	if err != nil {
		return onlineCount{}, fmt.Errorf("stats: count who is online: %w", err)
	}
	return onlineCount{nowAndOnline[1], time.Unix(nowAndOnline[0], 0)}, nil
}

// trimStep is how many viewers one call of the script removes.
const trimStep = 1000

// trim removes those who are gone, in steps that Redis hardly feels.
func (o *Online) trim(ctx context.Context) error {
	for {
		removed, err := onlineTrimScript.Run(ctx, o.rdb, []string{o.o.Keys.OnlineUsers()}, o.window.Load(), ahead, trimStep).Int64()
		if err != nil || removed == 0 {
			return err
		}
	}
}
