package browsertest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"headcount/internal/programtest"
)

var screenshots = flag.String("screenshots", "", "a `folder` to which screenshots of the demo are written")

// openDemo opens the demo and waits until its lessons play.
func (s *site) openDemo(t *testing.T, v *tab) {
	t.Helper()
	v.before(t, `window.violations = []; document.addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective))
		window.shift = 0
		new PerformanceObserver((list) => list.getEntries().forEach((e) => { shift += e.value })).observe({ type: 'layout-shift', buffered: true })`)
	v.open(t, s.URL+"/")
	v.until(t, "document.querySelectorAll('.lesson').length == 4 && [...document.querySelectorAll('video')].every((v) => v.currentTime > 0)")
	v.until(t, "[...document.querySelectorAll('viewer-count')].every((c) => c.viewers > 0)")
}

func testDemo(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	s.openDemo(t, v)
	if got := eval[float64](t, v, "shift"); got > 0.01 {
		t.Errorf("what is on the page has moved by %g while it was loaded, want it to stay", got)
	}
	click := func(change string) {
		v.run(t, `document.querySelectorAll('.lesson')[1].querySelector('[data-change="`+change+`"]').click()`)
	}
	shown := func() int { return eval[int](t, v, "document.querySelectorAll('viewer-count')[1].viewers ?? -1") }
	click("10")
	programtest.Eventually(t, "ten more are shown", func() bool { return shown() > 10 })
	if got := eval[string](t, v, "document.getElementById('status').textContent"); !strings.HasPrefix(got, "10 simulated viewers watch “Orbits” now") {
		t.Errorf("the page says %q", got)
	}
	s.photograph(t, v)
	click("-10")
	programtest.Eventually(t, "they have left", func() bool { return shown() < 10 }) // other tests look at the demo too
	click("1")
	v.until(t, "document.querySelectorAll('output')[1].textContent == 1")

	v.run(t, "document.querySelector('.play').click()")
	v.until(t, "document.querySelector('video').paused && document.querySelector('.play').ariaLabel == 'Play Waves'")
	if got := eval[[]string](t, v, "violations"); len(got) > 0 {
		t.Errorf("violations: %q", got)
	}
	foreign := "performance.getEntriesByType('resource').map((r) => r.name).filter((n) => !n.startsWith(location.origin + '/'))"
	if got := eval[[]string](t, v, foreign); len(got) > 0 {
		t.Errorf("loaded from elsewhere: %q", got)
	}
	v.wantQuiet(t)
	v.close(t) // with the simulated viewers
	programtest.Eventually(t, "the simulated viewer leaves with the page", func() bool {
		left := s.sent("10002", "leave")
		return len(left) > 0 && strings.Contains(left[len(left)-1].Body, "demo-")
	})
}

// photograph writes screenshots in both themes, on a desk and on a phone.
func (s *site) photograph(t *testing.T, v *tab) {
	if *screenshots == "" {
		return
	}
	v.run(t, `for (const [lesson, changes] of [[0, [10, 10, 1, 1]], [2, [1, 1, 1]], [3, [10, -1]]])
		for (const n of changes) document.querySelectorAll('.lesson')[lesson].querySelector('[data-change="' + n + '"]').click()`)
	v.until(t, "[...document.querySelectorAll('output')].map((o) => o.textContent).join() == '22,10,3,9'")
	v.until(t, "[...document.querySelectorAll('viewer-count')].every((c, i) => c.viewers > [22, 10, 3, 9][i])")
	for _, theme := range []string{"light", "dark"} {
		call(t, v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		for name, size := range map[string][2]int64{"demo-" + theme: {1280, 900}, "phone-" + theme: {375, 812}} {
			v.do(t, chromedp.EmulateViewport(size[0], size[1]))
			wide := eval[int](t, v, "document.documentElement.scrollWidth")
			if int64(wide) > size[0] {
				t.Errorf("the page is %d wide on a screen of %d", wide, size[0])
			}
			picture, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Without the server a lesson's dot is a ring, until it is back.
func testDemoOffline(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	s.openDemo(t, v)
	failed := "document.getElementById('status').textContent.startsWith('The server did not')"
	ring := "getComputedStyle(document.querySelector('.dot')).borderTopWidth == '2px'"
	if eval[bool](t, v, failed+"||"+ring) {
		t.Error("the page says that the server is away, though it is there")
	}
	s.block(cut)
	v.run(t, `document.querySelector('[data-change="1"]').click()`)
	v.until(t, failed)
	v.until(t, ring)
	s.block(nil)
	v.until(t, "!("+ring+") && !"+failed)
}

func testDemoChinese(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	v.before(t, "Object.defineProperty(navigator, 'language', { value: 'zh-CN' })")
	s.openDemo(t, v)
	if got := eval[string](t, v, "document.documentElement.lang + ' ' + document.querySelector('h1').textContent"); got != "zh-CN 曲线四课" {
		t.Errorf("the page's language and heading are %q", got)
	}
	if got := eval[string](t, v, "document.body.innerText"); strings.Contains(got, "undefined") || strings.Contains(got, "viewers") {
		t.Errorf("not all is translated: %s", got)
	}
	v.wantQuiet(t)
}

func testDemoNames(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	s.openDemo(t, v)
	var buttons, headings []string
	for _, n := range v.accessible(t) {
		switch n.role {
		case "button":
			buttons = append(buttons, n.name)
		case "heading":
			headings = append(headings, n.name)
		case "image", "link", "group", "region", "Video":
			if n.name == "" {
				t.Errorf("a %s without a name", n.role)
			}
		}
	}
	if len(buttons) != 20 || slices.Contains(buttons, "") || len(slices.Compact(slices.Sorted(slices.Values(buttons)))) != 20 {
		t.Errorf("buttons: %q, want 20 with names of their own", buttons)
	}
	want := []string{"Four lessons on curves", "Waves", "Orbits", "Knots", "Seeds", "Try it", "On your own page"}
	if !slices.Equal(headings, want) {
		t.Errorf("headings: %q, want %q", headings, want)
	}
	// By keyboard alone: the first stop leads past the header, and the next ones are the first lesson's.
	v.do(t, chromedp.KeyEvent("\t"))
	if got := eval[string](t, v, "document.activeElement.className"); got != "skip" {
		t.Errorf("the first stop is %q, want the link that skips the header", got)
	}
	v.do(t, chromedp.KeyEvent("\t"), chromedp.KeyEvent(" "))
	v.until(t, "document.querySelector('video').paused")
}
