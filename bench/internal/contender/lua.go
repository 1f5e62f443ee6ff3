package contender

import (
	"context"
	_ "embed"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/internal/keys"
)

//go:embed page.lua
var pageSource string

var pageScript = redis.NewScript(pageSource)

// lua leaves the paging to a script inside Redis, so that no viewer travels.
type lua struct {
	rdb  redis.UniversalClient
	keys keys.Keys
}

func newLua(addr string, _ dataset.Set, trips *atomic.Int64) (Contender, error) {
	rdb, err := connect(addr, trips)
	return &lua{rdb: rdb, keys: productKeys()}, err
}

func (l *lua) Pass(ctx context.Context) (viewers int64, err error) {
	if err := pageScript.Load(ctx, l.rdb).Err(); err != nil {
		return 0, err
	}
	err = scanPages(ctx, l.rdb, l.keys.OnlinePattern(), func(names []string) error {
		n, err := l.count(ctx, names)
		viewers += n
		return err
	})
	return viewers, err
}

// paged is a hash that the script is paging through.
type paged struct {
	name    string
	cursor  string
	viewers int64
	reply   *redis.Cmd
}

func (l *lua) count(ctx context.Context, names []string) (viewers int64, err error) {
	var all []*paged
	for _, name := range names {
		if !strings.HasPrefix(name, l.keys.Count("")) {
			all = append(all, &paged{name: name, cursor: "0"})
		}
	}
	for open := all; len(open) > 0; {
		if open, err = l.page(ctx, open); err != nil {
			return 0, err
		}
	}
	pipe := l.rdb.Pipeline()
	for _, p := range all {
		viewers += p.viewers
		video, _, _ := l.keys.Parse(p.name)
		pipe.Set(ctx, l.keys.Count(video), p.viewers, dataset.CountTTL)
	}
	return viewers, exec(ctx, pipe)
}

// page runs the script once on each hash and returns those that have more pages.
func (l *lua) page(ctx context.Context, open []*paged) (unfinished []*paged, err error) {
	pipe := l.rdb.Pipeline()
	for _, p := range open {
		p.reply = pageScript.EvalSha(ctx, pipe, []string{p.name}, p.cursor, pageSize, int64(dataset.Window/time.Second))
	}
	if err := exec(ctx, pipe); err != nil {
		return nil, err
	}
	for _, p := range open {
		reply, err := p.reply.Slice()
		if err != nil {
			return nil, err
		}
		cursor, viewers := reply[0].(string), reply[1].(int64)
		p.cursor, p.viewers, p.reply = cursor, viewers, nil
		if cursor != "0" {
			unfinished = append(unfinished, p)
		}
	}
	return unfinished, nil
}

func (l *lua) Close() error { return l.rdb.Close() }
