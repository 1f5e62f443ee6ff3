package stats

import (
	"cmp"
	"container/heap"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/counts"
)

var (
	//go:embed top.lua
	topSource string
	topScript = redis.NewScript(topSource)
)

// Top is the videos with the most viewers, as the last complete pass found them:
// a sorted set, video → viewers. Of videos with as many viewers, those come first
// whose ids come last in the order of bytes, as Redis has it.
type Top struct {
	*Store
	size int
	ttl  int64 // seconds
}

// Limits of a question.
const (
	defaultTop = 20
	mostTop    = 1000
)

// NewTop returns the statistic of so many videos. The list lives for ttl, in whole
// seconds, after the pass that made it.
func NewTop(s *Store, size int, ttl time.Duration) *Top {
	return &Top{Store: s, size: size, ttl: int64(ttl / time.Second)}
}

// replace writes the list, the largest first.
func (t *Top) replace(ctx context.Context, videos []counts.Count) error {
	args := []any{t.ttl}
	for _, v := range videos[:min(t.size, len(videos))] {
		args = append(args, v.Viewers, v.VideoID)
	}
	return topScript.Run(ctx, t.rdb, []string{t.o.Keys.Top()}, args...).Err()
}

// topList is an answer of List.
type topList struct {
	videoIDs []string
	viewers  []int64
	asOf     time.Time
}

// List returns the largest videos, at most limit of them, 0 for 20, and when the
// pass was that found them; the zero time if it was too long ago.
//
// Errors: *InputError, ctx's, or Redis's.
func (t *Top) List(ctx context.Context, limit int) (videoIDs []string, viewers []int64, asOf time.Time, err error) {
	limit = cmp.Or(limit, defaultTop)
	if limit < 0 || limit > mostTop {
		return nil, nil, time.Time{}, &InputError{"limit", fmt.Sprintf("must be a whole number from 1 to %d", mostTop)}
	}
	l, err := ask(ctx, t.Store, fmt.Sprint(nameTop, "\n", limit), t.o.Cache, func(ctx context.Context) (topList, error) {
		return t.list(ctx, limit)
	})
	return l.videoIDs, l.viewers, l.asOf, err
}

func (t *Top) list(ctx context.Context, limit int) (topList, error) {
	pipe := t.rdb.Pipeline()
	top := pipe.ZRevRangeWithScores(ctx, t.o.Keys.Top(), 0, int64(limit-1))
	finished := pipe.HGet(ctx, t.o.Keys.LastPass(), "finished_at")
	now := pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := top.Err(); err != nil {
		return topList{}, fmt.Errorf("stats: read the top: %w", err)
	}
	var l topList
	for _, z := range top.Val() {
		id, _ := z.Member.(string)
		l.videoIDs, l.viewers = append(l.videoIDs, id), append(l.viewers, int64(z.Score))
	}
	if seconds, err := finished.Int64(); err == nil && now.Err() == nil {
		if at := time.Unix(seconds, 0); now.Val().Sub(at) <= time.Duration(t.ttl)*time.Second {
			l.asOf = at
		}
	}
	return l, nil
}

// largest keeps the largest of many counts, however many there are. It is safe
// for concurrent use.
type largest struct {
	size int

	mu     sync.Mutex
	counts smallestFirst
}

// add takes a count in if it is among the largest so far.
func (l *largest) add(c counts.Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.counts) < l.size:
		heap.Push(&l.counts, c)
	case l.size > 0 && compare(c, l.counts[0]) > 0:
		l.counts[0] = c
		heap.Fix(&l.counts, 0)
	}
}

// sorted returns what was kept, the largest first.
func (l *largest) sorted() []counts.Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.counts)
	slices.SortFunc(all, func(a, b counts.Count) int { return compare(b, a) })
	return all
}

// compare is Redis's order in a sorted set.
func compare(a, b counts.Count) int {
	return cmp.Or(cmp.Compare(a.Viewers, b.Viewers), cmp.Compare(a.VideoID, b.VideoID))
}

// smallestFirst is a heap.Interface.
type smallestFirst []counts.Count

func (s smallestFirst) Len() int           { return len(s) }
func (s smallestFirst) Less(i, j int) bool { return compare(s[i], s[j]) < 0 }
func (s smallestFirst) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *smallestFirst) Push(c any)        { *s = append(*s, c.(counts.Count)) }
func (s *smallestFirst) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
