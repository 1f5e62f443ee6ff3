package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"

	"headcount/internal/programtest"
)

// play records a play without a browser.
func (l *lab) play(t *testing.T, video, viewer string) {
	t.Helper()
	programtest.Post(t, l.backend+"/v1/videos/"+video+"/play", `{"viewer_id":"`+viewer+`"}`).OK(t)
}

// lookups are the requests for counts so far.
func (s *site) lookups() (found []request) {
	for _, r := range s.all() {
		if r.Path == "/v1/viewers" {
			found = append(found, r)
		}
	}
	return found
}

func testCounts(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	var page strings.Builder
	var first string
	for range 100 {
		video := l.video()
		if first == "" {
			first = video
		}
		fmt.Fprintf(&page, `<viewer-count video-id="%s" refresh="2"></viewer-count> `, video)
	}
	l.play(t, first, "ann")
	v.watchRequests(t)
	v.open(t, s.page("/", s.script()+page.String()))
	v.until(t, "[...document.querySelectorAll('viewer-count')].every((c) => c.getAttribute('state') == 'known')")
	got := eval[string](t, v, "[...document.querySelectorAll('viewer-count')].map((c) => c.viewers).join('')")
	if want := "1" + strings.Repeat("0", 99); got != want {
		t.Errorf("counts = %s, want %s", got, want)
	}
	programtest.Eventually(t, "another refresh", func() bool { return len(s.lookups()) >= 2 })
	requests := s.lookups()
	for _, r := range requests {
		if n := strings.Count(r.Query, "video_id="); n != 100 {
			t.Errorf("a request asks for %d videos, want all 100", n)
		}
	}
	if pause := v.pauses(t, "/v1/viewers")[0]; pause < 1000 {
		t.Errorf("the second request came after %g ms, want 2s", pause)
	}
	v.wantQuiet(t)
}

func testCountStates(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.before(t, `window.changes = []; document.addEventListener('change', (e) => changes.push(e.target.getAttribute('state') + ' ' + e.target.viewers), true)`)
	v.open(t, s.page("/", s.script()+`<viewer-count id="c" video-id="`+video+`" refresh="1"></viewer-count> watching`))
	text := "[...c.shadowRoot.children].map((e) => e.textContent).join('|')"
	width := eval[float64](t, v, "c.getBoundingClientRect().width")
	v.until(t, "c.getAttribute('state') == 'known'")
	if got := eval[string](t, v, text); got != "0|" {
		t.Errorf("nobody: shows %q, want 0", got)
	}
	if got := eval[float64](t, v, "c.getBoundingClientRect().width"); got != width {
		t.Errorf("the number's width went from %g to %g", width, got)
	}

	unknown := `{"counts":[{"video_id":"","viewers":0}],"as_of":null}`
	s.block(func(w http.ResponseWriter, _ *http.Request) bool { _, _ = fmt.Fprint(w, unknown); return true })
	v.until(t, "c.getAttribute('state') == 'unknown'")
	if got := eval[string](t, v, text); got != "–|unknown" {
		t.Errorf("unknown: shows %q, want no number", got)
	}
	many := `{"counts":[{"video_id":"","viewers":1234567}],"as_of":"2026-11-30T14:00:00Z"}`
	s.block(func(w http.ResponseWriter, _ *http.Request) bool { _, _ = fmt.Fprint(w, many); return true })
	v.until(t, "c.viewers == 1234567")
	if got := eval[string](t, v, text); got != "1,234,567|" {
		t.Errorf("many: shows %q, want the page's language's form", got)
	}
	s.block(cut)
	v.until(t, "c.getAttribute('state') == 'offline'")
	if got := eval[string](t, v, text); got != "–|offline" || !eval[bool](t, v, "c.viewers === null") {
		t.Errorf("offline: shows %q, want no number", got)
	}
	s.block(nil)
	v.until(t, "c.viewers === 0")

	want := "loading null,known 0,unknown null,known 1234567,offline null,known 0"
	if got := eval[string](t, v, "changes.join()"); got != want {
		t.Errorf("changes = %s, want %s", got, want)
	}
	v.run(t, "window.d = c.cloneNode(true); d.id = 'd'; document.body.append(d); c.setAttribute('video-id', c.getAttribute('video-id'))")
	if got := eval[string](t, v, "changes.at(-1) + ',' + c.getAttribute('state')"); got != "loading null,known" {
		t.Errorf("a clone, and the same video again: %s, want the clone's loading alone", got)
	}
	v.until(t, "d.getAttribute('state') == 'known'")
	v.run(t, "c.setAttribute('video-id', 'count:1')") // which the server would refuse
	v.until(t, "c.getAttribute('state') == 'unknown'")
	v.wantQuiet(t)
}

func testCountsHidden(t *testing.T, l *lab) {
	s, v, video, other := l.site(t), l.browser.visitor(t), l.video(), l.video()
	v.open(t, s.page("/", s.script()+playing(other, "")+`<viewer-count video-id="`+video+`" refresh="1"></viewer-count>`))
	programtest.Eventually(t, "two refreshes", func() bool { return len(s.lookups()) >= 2 })
	hide := func(hidden bool) {
		v.run(t, fmt.Sprintf("Object.defineProperty(document, 'hidden', { configurable: true, value: %t }); document.dispatchEvent(new Event('visibilitychange'))", hidden))
	}
	hide(true)
	s.more(t, other, 2) // a video goes on in the background
	before := len(s.lookups())
	s.more(t, other, 2)
	if got := len(s.lookups()); got != before {
		t.Errorf("%d refreshes while hidden, want none", got-before)
	}
	hide(false)
	programtest.Eventually(t, "a refresh", func() bool { return len(s.lookups()) > before })
}

// axNode is what a screen reader knows of an element.
type axNode struct{ role, name string }

// accessible returns the page's accessibility tree, flat, in the order in which
// it is read.
func (v *tab) accessible(t *testing.T) (nodes []axNode) {
	t.Helper()
	call(t, v, accessibility.Enable, cdp.Empty{})
	tree := call(t, v, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	byID := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range tree.Nodes {
		byID[n.NodeID] = n
	}
	var read func(accessibility.NodeID)
	read = func(id accessibility.NodeID) {
		n, known := byID[id]
		if !known {
			return
		}
		if !n.Ignored {
			nodes = append(nodes, axNode{axText(n.Role), axText(n.Name)})
		}
		for _, child := range n.ChildIDs {
			read(child)
		}
	}
	read(tree.Nodes[0].NodeID)
	return nodes
}

func axText(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}

func testCountNames(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.open(t, s.page("/", s.script()+`<p><viewer-count id="c" video-id="`+video+`" refresh="1"></viewer-count> watching</p>
		<p><viewer-count video-id="count:1" aria-live="off"></viewer-count></p>`))
	v.until(t, "c.viewers === 0")
	// The dash is for the eye: a screen reader hears what it means.
	programtest.Eventually(t, "a screen reader reads 0 watching, and unknown", func() bool {
		var texts []string
		for _, n := range v.accessible(t) {
			if n.role == "StaticText" {
				texts = append(texts, n.name)
			}
		}
		return strings.Join(texts, "|") == "0| watching|unknown"
	})
	got := eval[string](t, v, "[...document.querySelectorAll('viewer-count')].map((c) => c.getAttribute('aria-live')).join()")
	if got != "polite,off" {
		t.Errorf("aria-live = %s, want polite unless the page says otherwise", got)
	}
}
