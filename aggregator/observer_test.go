package aggregator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/counts"
	"headcount/internal/keys"
	"headcount/internal/redistest"
)

// witness is an Observer that notes what it is told of passes.
type witness struct {
	anew bool

	mu       sync.Mutex
	counted  map[string]counts.Count
	twice    int
	over     int
	viewers  int64
	complete bool
}

func (w *witness) Anew() bool { return w.anew }

func (w *witness) Counted(_ context.Context, videos []counts.Count) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range videos {
		if _, told := w.counted[v.VideoID]; told {
			w.twice++
		}
		w.counted[v.VideoID] = v
	}
}

func (w *witness) Over(_ context.Context, _ time.Time, viewers int64, complete bool) {
	w.over++
	w.viewers, w.complete = viewers, complete
}

// observe has the worker's passes observed.
func (e *env) observe(w *witness) {
	e.agg.o.Observe = func(time.Time) Observer {
		w.counted, w.twice = make(map[string]counts.Count), 0
		return w
	}
}

func found(video string, viewers int64, rose bool) counts.Count {
	return counts.Count{VideoID: video, Viewers: viewers, Rose: rose}
}

func (w *witness) want(t *testing.T, what string, want ...counts.Count) {
	t.Helper()
	all := make(map[string]counts.Count)
	for _, c := range want {
		all[c.VideoID] = c
	}
	if diff := cmp.Diff(all, w.counted); diff != "" || w.twice > 0 {
		t.Errorf("%s: told %d videos twice, and (-want +got):\n%s", what, w.twice, diff)
	}
}

func TestPassTellsWhatItFinds(t *testing.T) {
	onEach(t, func(t *testing.T, e *env) {
		w := &witness{}
		e.observe(w)
		e.seed("a", map[string]int64{"u1": 1, "u2": 1, "gone": 3600})
		e.seed("b", map[string]int64{"u1": 1})
		e.seed("gone", map[string]int64{"gone": 3600})
		e.seedMany("large", 600, 5)
		e.pass()
		w.want(t, "a first pass", found("a", 2, true), found("b", 1, true), found("large", 600, true))
		if w.over != 1 || w.viewers != 603 || !w.complete {
			t.Errorf("over %d times, with %d viewers, complete %t; want once, 603, true", w.over, w.viewers, w.complete)
		}
		e.pass()
		w.want(t, "nothing changed", found("a", 2, false), found("b", 1, false), found("large", 600, false))

		must(t, e.raw.HDel(t.Context(), e.k.Online("a"), "u1").Err())
		e.seed("b", map[string]int64{"u2": 1, "u3": 1})
		e.pass()
		w.want(t, "one fell, one rose", found("a", 1, false), found("b", 3, true), found("large", 600, false))

		e.seed("a", map[string]int64{"u1": 1})
		e.pass()
		w.want(t, "one is where it was", found("a", 2, false), found("b", 3, false), found("large", 600, false))

		w.anew = true
		e.pass()
		w.want(t, "anew", found("a", 2, true), found("b", 3, true), found("large", 600, true))
		w.anew = false
		e.newWorker()
		e.observe(w)
		e.pass()
		w.want(t, "a new worker", found("a", 2, true), found("b", 3, true), found("large", 600, true))
	})
}

// A recorder publishes a first viewer at once, so that the pass has nothing to change.
func TestPassTellsOfWhatIsPublishedAlready(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Shared(t).Addr())
	w := &witness{}
	e.observe(w)
	e.pass()
	e.seed("a", map[string]int64{"u1": 1})
	must(t, e.raw.Set(t.Context(), e.k.Count("a"), 1, countTTL).Err())
	e.pass()
	w.want(t, "published already", found("a", 1, true))
}

func TestPartialPassIsToldAsSuch(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Shared(t).Addr())
	w := &witness{}
	e.observe(w)
	e.seed("a", map[string]int64{"u1": 1})
	e.seed("bad", map[string]int64{"u1": 1})
	e.fail("hrandfield", e.k.Online("bad"), errors.New("no answer"))
	if _, err := e.agg.Pass(t.Context()); err == nil {
		t.Fatal("the pass is complete")
	}
	w.want(t, "partial", found("a", 1, true))
	if w.over != 1 || w.complete {
		t.Errorf("over %d times, complete %t; want once, false", w.over, w.complete)
	}
}

// Statistics stay when nobody watches; the database is not the wrong one.
func TestNoWarningWhereStatisticsAre(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Addr())
	w := &witness{}
	e.observe(w)
	must(t, e.raw.HSet(t.Context(), e.k.Plays(""), "total", 1).Err())
	for i := range 5 {
		must(t, e.raw.Set(t.Context(), e.k.Uniques("", strings.Repeat("x", i)), "x", 0).Err())
	}
	e.pass()
	if n := e.logs.Len(); n > 0 {
		t.Errorf("%d log lines, want none: %v", n, e.logs.All())
	}
	e.k = keys.New(redistest.Prefix(t))
	e.newWorker()
	e.observe(w)
	e.pass()
	if n := e.logs.FilterMessageSnippet("check prefix").Len(); n != 1 {
		t.Errorf("%d warnings about another prefix, want 1", n)
	}
}
