package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"

	"headcount/internal/keys"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// What is not known is not said to be nothing, and a statistic that fails is not well.
func TestConsoleStatisticsFail(t *testing.T) {
	t.Parallel()
	b, k := &board{browser: startBrowser(t), redis: redistest.Start(t)}, keys.New("video")
	junk := func(key string) {
		if err := b.redis.Client().Set(t.Context(), key, "junk", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(key string) {
		if err := b.redis.Client().Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	warning := "document.getElementById('warning-list').textContent"
	env := programtest.Env(b.redis.Addr(), "video", "HEADCOUNT_WORKER_INTERVAL=1s", "HEADCOUNT_REDIS_TIMEOUT=1s", "HEADCOUNT_STATS_HISTORY=1h")
	junk(k.Top())
	v := b.browser.visitor(t)
	v.open(t, programtest.Exec(t, programtest.Build(t, "recorder"), env).URL(t, "admin")+"/console/")
	v.until(t, warning+".includes('could not be written or read of late: stats.top.') && document.getElementById('well').hidden")
	v.shows(t, "chart-name", "Viewers over 1 hour")
	v.shows(t, "video-chart-name", "Viewers over 1 hour")
	remove(k.Top())
	v.shows(t, "top-note", "Who is watching is unknown: no complete pass of late.")
	v.until(t, "!"+warning+".includes('stats.')")

	junk(k.Top()) // a worker cannot write it
	w := b.browser.visitor(t)
	w.open(t, programtest.Exec(t, programtest.Build(t, "worker"), env).URL(t, "admin")+"/console/")
	w.until(t, warning+".includes('stats.top')")
	remove(k.Top())
	v.shows(t, "top-note", "Nobody is watching.")
	w.until(t, "!document.getElementById('well').hidden")
	w.run(t, "location.hash = '#runbook=headcountstatisticserrors'")
	w.until(t, "document.getElementById('runbook-text').textContent.includes('ACL LOG')")
	w.do(t, chromedp.EmulateViewport(1920, 1400))
	w.until(t, "document.querySelectorAll('#passes tbody tr').length > 5")
	if got := eval[float64](t, w, "document.querySelector('.top-card').clientHeight"); got > 200 {
		t.Errorf("the card of an empty list is %g px high", got)
	}
	v.wantQuiet(t)
	w.wantQuiet(t)
}
