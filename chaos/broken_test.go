package chaos

import (
	"strings"
	"testing"
	"time"

	"headcount/internal/redistest"
)

// faults are what must not go unseen: each breaks a program where it is built.
var faults = map[string]struct {
	file, text, replacement string
	want                    kind
	short                   bool // is tried in the short form too; each takes a build
}{
	"a recorder that acknowledges some plays without writing them": {
		file: "recorder/group.go",
		text: "\t\tif q.ctx.Err() != nil {\n\t\t\tq.finish(0, context.Cause(q.ctx))\n",
		replacement: "\t\tif n := len(q.viewer); q.kind == play && q.viewer[n-1] == '7' {\n\t\t\tq.finish(time.Now().Unix(), nil)\n\t\t\tcontinue\n\t\t}\n" +
			"\t\tif q.ctx.Err() != nil {\n\t\t\tq.finish(0, context.Cause(q.ctx))\n",
		want:  lost,
		short: true,
	},
	"a recorder that acknowledges some leaves without writing them": {
		file:        "recorder/group.go",
		text:        "\t\tif q.ctx.Err() != nil {\n\t\t\tq.finish(0, context.Cause(q.ctx))\n",
		replacement: "\t\tif q.kind == leave || q.ctx.Err() != nil {\n\t\t\tq.finish(0, context.Cause(q.ctx))\n",
		want:        stayed,
	},
	"a worker that counts one too many": {
		file:        "aggregator/publish.go",
		text:        "w.set = s.counts.Set(ctx, pipe, r.video, r.viewers)",
		replacement: "w.set = s.counts.Set(ctx, pipe, r.video, r.viewers+1)",
		want:        wrongCount,
	},
	"a recorder that counts plays twice": {
		file:        "stats/plays.go",
		text:        "add[fieldTotal] += n",
		replacement: "add[fieldTotal] += 2 * n",
		want:        wrongPlays,
	},
	"a recorder whose plays do not show that a viewer is on the site": {
		file:        "recorder/group.go",
		text:        "if r.o.Statistics.Online != nil && r.o.MaxViewers == 0 {",
		replacement: "if r.o.Statistics.Online != nil && r.o.MaxViewers < 0 {",
		want:        wrongOnline,
	},
	"a recorder that does not note who watched": {
		file:        "recorder/statistics.go",
		text:        "if s.Uniques != nil && len(viewers) > 0 {",
		replacement: "if s.Uniques != nil && len(viewers) < 0 {",
		want:        wrongUniques,
	},
	"a worker that lets counts expire early": {
		file:        "internal/counts/counts.go",
		text:        "TTL: jitter(w.TTL), Mode",
		replacement: "TTL: jitter(w.TTL / 60), Mode",
		want:        wrongTTL,
	},
	"a worker that evicts too early": {
		file:        "aggregator/aggregator.go",
		text:        "{ a.window.Store(int64(window)) }",
		replacement: "{ a.window.Store(int64(window / 300)) }",
		want:        lost,
	},
}

// TestBrokenPrograms is the test of the suite itself: with a program that is broken on purpose, the judge finds it.
func TestBrokenPrograms(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		if !*full && !fault.short {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			broken := overlay(t, fault.file, fault.text, fault.replacement)
			server := redistest.Start(t)
			site := s.newSite(server.Client(), server.Addr())
			if strings.HasPrefix(name, "a recorder") {
				site.binaries.recorder = built.path(t, "recorder", broken)
			} else {
				site.binaries.worker = built.path(t, "worker", broken)
			}
			site.addRecorder(t)
			site.startWorker(t)
			load := site.startLoad(t, loadOptions{players: 10, videos: 5, pause: 5 * time.Millisecond}, nil)
			eventually(t, "some plays", func() bool { n, _ := site.ledger.totals(); return n > 1000 })
			load.stop()
			eventually(t, "the judge finds it", func() bool {
				site.awaitPass(t)
				found, err := site.judge.look(t.Context(), site.redis, site.ledger)
				if err != nil {
					t.Fatal(err)
				}
				return count(found, fault.want) > 0
			})
		})
	}
}
