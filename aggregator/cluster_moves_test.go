package aggregator

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
)

// once returns f for the first call and nothing for the others.
func once(f func()) func() {
	done := false
	return func() {
		if !done {
			done = true
			f()
		}
	}
}

// A slot moves to another master while a pass runs. Whether its keys are on the
// way yet (ASK) or it has arrived (MOVED), every count is right.
func testVideoMoves(t *testing.T, c *redistest.Cluster) {
	online, count := keyOfHash, keyOfCount
	for _, tc := range []struct {
		name  string
		slot  func(e *env) string // a key of it
		when  string              // before the command
		on    func(e *env) string // … on this key
		stays bool                // on its way for the rest of the pass
	}{
		{"hash on its way before it is read", online, "hrandfield", online, true},
		{"hash gone before it is read", online, "hrandfield", online, false},
		{"hash on its way before the eviction", online, "evalsha", online, true},
		{"hash gone before the eviction", online, "evalsha", online, false},
		{"hash on its way before the count is set", online, "set", count, true},
		{"hash gone before the count is set", online, "set", count, false},
		{"count on its way before it is read", count, "hrandfield", online, true},
		{"count gone before it is read", count, "hrandfield", online, false},
		{"count on its way before it is set", count, "set", count, true},
		{"count gone before it is set", count, "set", count, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newClusterEnv(t, c)
			want := e.seedAround(map[string]int64{"a": 0, "b": 0, "gone": 700})
			e.seed("none", map[string]int64{"gone": 700})
			must(t, e.raw.Set(t.Context(), e.k.Count("moving"), 7, 0).Err())
			slot := c.Slot(t, tc.slot(e))
			var m *redistest.Migration
			move := once(func() {
				m = c.Migrate(t, slot, c.Other(c.Owner(t, slot)))
				if m.MoveKeys(t) == 0 {
					t.Error("there was nothing to move")
				}
				if !tc.stays {
					m.Finish(t)
				}
			})
			e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
				if anyNames(cmds, tc.when, tc.on(e)) {
					move()
				}
			}})

			sum := e.pass()

			if m == nil {
				t.Fatal("the slot has not moved")
			}
			if sum.Videos != around || sum.Viewers != 2*around || sum.Evicted != around+1 || sum.Errors != 0 {
				t.Errorf("got %+v, want %d videos with 2 viewers each, %d evicted, no errors", sum, around, around+1)
			}
			e.wantCounts(want)
			e.wantViewers("moving", "a", "b")
			e.seed("moving", map[string]int64{"c": 0})
			e.pass() // by what is remembered
			if tc.stays {
				m.Finish(t)
			}
			want["moving"] = "3"
			e.wantCounts(want)
			e.seed("moving", map[string]int64{"d": 0})
			e.newWorker()
			e.pass()
			want["moving"] = "4"
			e.wantCounts(want)
		})
	}
}

func keyOfHash(e *env) string  { return e.k.Online("moving") }
func keyOfCount(e *env) string { return e.k.Count("moving") }

const around = 60

// seedAround seeds the video "moving" and others, and returns their counts once
// the stale viewer is evicted.
func (e *env) seedAround(ages map[string]int64) map[string]string {
	e.t.Helper()
	want := make(map[string]string)
	viewers := 0
	for _, age := range ages {
		if age < 600 {
			viewers++
		}
	}
	e.seedVideos(around-1, ages)
	for i := range around - 1 {
		want[fmt.Sprint(i)] = fmt.Sprint(viewers)
	}
	e.seed("moving", ages)
	want["moving"] = fmt.Sprint(viewers)
	return want
}

// A slot of many videos moves key by key; the pass sees it half moved.
func testSlotIsHalfMoved(t *testing.T, c *redistest.Cluster) {
	e := newClusterEnv(t, c)
	const videos = 40
	want := make(map[string]string)
	var half []string
	for i := range videos {
		video := fmt.Sprintf("{moving}%d", i) // the braces put all into one slot
		e.seed(video, map[string]int64{"a": 0, "b": 0, "gone": 700})
		must(t, e.raw.Set(t.Context(), e.k.Count(video), 7, 0).Err())
		want[video] = "2"
		if i%2 == 0 {
			half = append(half, e.k.Online(video))
		}
		if i%4 < 2 {
			half = append(half, e.k.Count(video))
		}
	}
	slot := c.Slot(t, e.k.Online("{moving}0"))
	var m *redistest.Migration
	moveHalf := once(func() {
		m = c.Migrate(t, slot, c.Other(c.Owner(t, slot)))
		m.MoveKeys(t, half...)
	})
	moveRest := once(func() {
		m.MoveKeys(t)
		m.Finish(t)
	})
	e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
		switch cmds[0].Name() {
		case "hrandfield":
			moveHalf()
		case "set":
			moveRest()
		}
	}})
	if sum := e.pass(); sum.Videos != videos || sum.Viewers != 2*videos || sum.Evicted != videos {
		t.Errorf("got %+v, want %d videos with 2 viewers each, %d evicted", sum, videos, videos)
	}
	e.wantCounts(want)
	if sum := e.pass(); sum.Videos != videos || sum.Viewers != 2*videos || sum.Evicted != 0 {
		t.Errorf("the next pass: got %+v, want %d videos with 2 viewers each", sum, videos)
	}
	e.wantCounts(want)
}

// HSCAN's cursor means nothing to another server, which takes it all the same:
// a hash that moves between two pages is read from its beginning.
func testLargeHashMoves(t *testing.T, c *redistest.Cluster) {
	for _, tc := range []struct {
		name  string
		stays bool
	}{{"on its way", true}, {"gone", false}} {
		t.Run(tc.name, func(t *testing.T) {
			e := newClusterEnv(t, c)
			e.seedMany("moving", 3000, 0)
			e.seedMany("moving", 500, 590) // …, who would be taken for fresh ones if nobody looked
			e.seedMany("moving", 1500, 700)
			slot := c.Slot(t, keyOfHash(e))
			var m *redistest.Migration
			pages := 0
			e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
				if !anyNames(cmds, "hscan", keyOfHash(e)) {
					return
				}
				if pages++; pages == 5 {
					m = c.Migrate(t, slot, c.Other(c.Owner(t, slot)))
					m.MoveKeys(t)
					if !tc.stays {
						m.Finish(t)
					}
				}
			}})

			sum := e.pass()

			if m == nil {
				t.Fatal("the hash has not moved")
			}
			if sum.Viewers != 3500 || sum.Evicted != 1500 {
				t.Errorf("got %d viewers, %d evicted; want 3500, 1500", sum.Viewers, sum.Evicted)
			}
			e.wantCounts(map[string]string{"moving": "3500"})
			s := e.agg.kept.Load().see("moving", 0)
			if latest := e.now() + 600 - 590; s.due == 0 || s.due > latest {
				t.Errorf("to be read again at %d, want when the first viewers go stale, by %d", s.due, latest)
			}
			if tc.stays {
				m.Finish(t)
			}
			e.newWorker()
			e.pass()
			e.wantCounts(map[string]string{"moving": "3500"})
		})
	}
}

// One that moves again meanwhile is left to the next pass: what was read from
// the one before is of no use.
func testLargeHashMovesTwice(t *testing.T, c *redistest.Cluster) {
	e := newClusterEnv(t, c)
	e.seedMany("moving", 6*pageSize, 0)
	e.seedMany("moving", 3*pageSize, 700)
	must(t, e.raw.Set(t.Context(), e.k.Count("moving"), 7, countTTL).Err())
	slot := c.Slot(t, keyOfHash(e))
	var way []*redistest.Server // the other two masters
	for _, s := range c.Masters() {
		if s != c.Owner(t, slot) {
			way = append(way, s)
		}
	}
	pages := 0
	e.intercept(hook{before: func(_ context.Context, cmds []redis.Cmder) {
		if !anyNames(cmds, "hscan", keyOfHash(e)) {
			return
		}
		if pages++; len(way) > 0 && pages%4 == 3 {
			m := c.Migrate(t, slot, way[0])
			m.MoveKeys(t)
			m.Finish(t)
			way = way[1:]
		}
	}})

	sum, err := e.agg.Pass(t.Context())

	if len(way) > 0 {
		t.Fatal("the hash has not moved twice")
	}
	if err == nil || sum.Errors != 1 || sum.Viewers != 0 {
		t.Errorf("got %d errors (%v) and %d viewers, want 1 and none", sum.Errors, err, sum.Viewers)
	}
	e.wantCounts(map[string]string{"moving": "7"})
	e.pass()
	e.wantCounts(map[string]string{"moving": fmt.Sprint(6 * pageSize)})
}

// Whether a hash was made again is asked once its count was set to 0: keys may
// be on two masters, and one of them slow.
func testZeroHidesNoFirstViewer(t *testing.T, c *redistest.Cluster) {
	e := newClusterEnv(t, c)
	want := make(map[string]string)
	for i := range 20 {
		video := fmt.Sprint(i)
		must(t, e.raw.Set(t.Context(), e.k.Count(video), 7, countTTL).Err())
		want[video] = "1"
	}
	var mu sync.Mutex
	zeroed := make(map[string]bool)
	e.intercept(hook{atOnce: true, after: func(_ context.Context, cmds []redis.Cmder) {
		mu.Lock()
		defer mu.Unlock()
		for video := range want {
			if anyNames(cmds, "set", e.k.Count(video)) {
				zeroed[video] = true
			}
		}
	}, before: func(_ context.Context, cmds []redis.Cmder) {
		mu.Lock()
		defer mu.Unlock()
		for video := range want {
			if zeroed[video] && anyNames(cmds, "hlen", e.k.Online(video)) {
				zeroed[video] = false
				e.seed(video, map[string]int64{"first": 0})
			}
		}
	}})
	e.pass()
	e.wantCounts(want)
}

// Keys that go from a master whose scan has not come to them to one whose scan
// is over are seen by neither. Their counts stay, and are right with the next
// pass; where one key of the video is seen, it is right at once.
func testVideoSlipsByTheScans(t *testing.T, c *redistest.Cluster) {
	for _, tc := range []struct {
		name, video string
		meanwhile   string
	}{
		{"hash and count slip by", "{moving}", "2"},
		{"only the hash does", "moving", "3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newClusterEnv(t, c)
			want := e.seedAround(map[string]int64{"a": 0, "b": 0})
			e.seed(tc.video, map[string]int64{"a": 0, "b": 0})
			e.pass()
			want[tc.video] = "2"
			e.wantCounts(want)
			for video := range want {
				e.seed(video, map[string]int64{"c": 0})
				want[video] = "3"
			}
			e.slipBy(c, tc.video)

			e.pass()

			meanwhile := maps.Clone(want)
			meanwhile[tc.video] = tc.meanwhile
			e.wantCounts(meanwhile)
			e.pass()
			e.wantCounts(want)
		})
	}
}

// slipBy moves a video's slot, in the next pass, after its new master's scan and
// before its old one's.
func (e *env) slipBy(c *redistest.Cluster, video string) {
	e.t.Helper()
	slot := c.Slot(e.t, e.k.Online(video))
	from := c.Owner(e.t, slot)
	to := c.Other(from)
	scanned := make(chan struct{})
	arrived := once(func() { close(scanned) })
	move := once(func() {
		m := c.Migrate(e.t, slot, to)
		m.MoveKeys(e.t)
		m.Finish(e.t)
	})
	e.intercept(hook{atOnce: true,
		before: func(ctx context.Context, cmds []redis.Cmder) {
			if cmds[0].Name() == "scan" && nodeOf(ctx) == from.Addr() {
				select {
				case <-scanned:
					move()
				case <-ctx.Done():
				}
			}
		},
		after: func(ctx context.Context, cmds []redis.Cmder) {
			scan, ok := cmds[0].(*redis.ScanCmd)
			if !ok || cmds[0].Name() != "scan" || nodeOf(ctx) != to.Addr() {
				return
			}
			if _, cursor := scan.Val(); cursor == 0 {
				arrived()
			}
		},
	})
}
