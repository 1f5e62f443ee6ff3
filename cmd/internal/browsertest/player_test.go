package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"headcount/internal/programtest"
)

// message is the body of a play or a leave.
type message struct {
	ViewerID   string `json:"viewer_id"`
	RecordedAt *int64 `json:"recorded_at"`
	Token      string `json:"token"`
	Resumed    bool   `json:"resumed"`
}

func (r request) message(t *testing.T) message {
	t.Helper()
	var m message
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return m
}

func testPlay(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.watchRequests(t)
	v.open(t, s.page("/", `<h1 id="Headcount">A lesson</h1>`+s.script()+playing(video, ""))) // which is globalThis.Headcount too
	first := s.wait(t, video, "play", 1)
	if first.ContentType != "text/plain;charset=UTF-8" {
		t.Errorf("Content-Type = %q, want text/plain, which needs no preflight", first.ContentType)
	}
	l.wantViewers(t, video, 1)

	s.wait(t, video, "play", 2)
	if pause := v.pauses(t, "/play")[0]; pause < 500 {
		t.Errorf("the second beat came %g ms after the first, want a second as the server says", pause)
	}
	v.do(t, chromedp.Reload())
	n := len(s.sent(video, "play"))
	third := s.wait(t, video, "play", n+1)
	if a, b := first.message(t).ViewerID, third.message(t).ViewerID; a != b || len(a) < 20 {
		t.Errorf("viewer ids of two visits: %q, %q; want the same random one", a, b)
	}
	l.wantViewers(t, video, 1)
	v.wantQuiet(t)
}

func testPause(t *testing.T, l *lab) {
	s, v, video, other := l.site(t), l.browser.visitor(t), l.video(), l.video()
	v.open(t, s.page("/", s.script()+playing(video, "")+playing(other, "")))
	s.wait(t, video, "play", 1)
	s.wait(t, other, "play", 1)
	v.run(t, "v"+video+".pause()")
	v.until(t, "v"+video+".paused")
	s.more(t, other, 1) // whatever was under way has arrived
	before := len(s.sent(video, "play"))
	s.more(t, other, 3)
	s.wantSent(t, video, "play", before)
	s.wantSent(t, video, "leave", 0)

	v.run(t, "v"+video+".play()")
	s.wait(t, video, "play", before+1)
}

func testSeeksAndLoops(t *testing.T, l *lab) {
	s, v, video, other := l.site(t), l.browser.visitor(t), l.video(), l.video()
	loop := fmt.Sprintf(`<video id="v%s" data-headcount="%s" src="/sound?seconds=1" autoplay loop></video>`, video, video)
	v.open(t, s.page("/", s.script()+loop+playing(other, "")))
	v.run(t, `var seeks = 0; v`+video+`.onseeked = () => seeks++; setInterval(() => { v`+video+`.currentTime = Math.random() }, 150)`)
	s.wait(t, video, "play", 1)
	s.wait(t, other, "play", 1)
	s.more(t, other, 4)
	if seeks := eval[int](t, v, "seeks"); seeks < 10 {
		t.Fatalf("%d seeks, want many", seeks)
	}
	got, want := len(s.sent(video, "play")), len(s.sent(other, "play"))
	if got < want-2 || got > want+2 {
		t.Errorf("%d plays of the video that is sought in, and %d of the other", got, want)
	}
	s.wantSent(t, video, "leave", 0)
	l.wantViewers(t, video, 1)
}

func testEnd(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.open(t, s.page("/", s.script()+fmt.Sprintf(`<video id="v" data-headcount="%s" src="/sound?seconds=1" autoplay></video>`, video)))
	l.wantViewers(t, video, 1)
	var leave request
	programtest.Eventually(t, "a leave that is guarded", func() bool {
		sent := s.sent(video, "leave") // one before it is not, if a beat was under way
		if len(sent) > 0 {
			leave = sent[len(sent)-1]
		}
		return len(sent) > 0 && leave.message(t).RecordedAt != nil
	})
	if leave.ContentType != "text/plain;charset=UTF-8" {
		t.Errorf("Content-Type of a leave = %q, want text/plain", leave.ContentType)
	}
	l.wantViewers(t, video, 0)
	plays, leaves := len(s.sent(video, "play")), len(s.sent(video, "leave"))
	v.run(t, "v.play()")
	s.wait(t, video, "play", plays+1)
	s.wait(t, video, "leave", leaves+1)
	l.wantViewers(t, video, 0)
	v.wantQuiet(t)
}

func testElements(t *testing.T, l *lab) {
	s, v, video, next := l.site(t), l.browser.visitor(t), l.video(), l.video()
	v.open(t, s.page("/", s.script()+"<main></main>"))
	add := func(video string) {
		v.run(t, `document.querySelector('main').insertAdjacentHTML('beforeend', '<div>`+playing(video, "")+`</div>')`)
	}
	add(video)
	l.wantViewers(t, video, 1)

	// The page's player goes on to the next video.
	v.run(t, "v"+video+".dataset.headcount = '"+next+"'")
	s.wait(t, video, "leave", 1)
	l.wantViewers(t, video, 0)
	l.wantViewers(t, next, 1)

	v.run(t, "document.querySelector('main').replaceChildren()")
	s.wait(t, next, "leave", 1)
	l.wantViewers(t, next, 0)

	// A paused one that is removed leaves as well.
	add(next)
	l.wantViewers(t, next, 1)
	v.run(t, "v"+next+".pause()")
	v.until(t, "v"+next+".paused")
	v.run(t, "v"+next+".remove()")
	l.wantViewers(t, next, 0)
	v.wantQuiet(t)
}

func testMutedPreview(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	preview, asked, pressed, other := l.video(), l.video(), l.video(), l.video()
	v.open(t, s.page("/", s.script()+playing(preview, "muted")+playing(asked, "muted data-headcount-muted")+playing(pressed, "muted")+playing(other, "")+
		`<button onclick="v`+pressed+`.play()">Play</button>`))
	v.until(t, "v"+preview+".currentTime > 0")
	s.wait(t, asked, "play", 1)
	s.more(t, other, 2)
	s.wantSent(t, preview, "play", 0)

	v.run(t, "v"+preview+".muted = false")
	s.wait(t, preview, "play", 1)
	v.run(t, "v"+preview+".muted = true") // by a viewer, who goes on watching
	s.more(t, preview, 2)

	v.run(t, "v"+pressed+".pause(); document.querySelector('button').focus()")
	s.wantSent(t, pressed, "play", 0)
	v.do(t, chromedp.KeyEvent("\r")) // a viewer plays it on, though without sound
	s.wait(t, pressed, "play", 1)
}

// Timers of background tabs may stand still for minutes; here they do for good.
func testThrottled(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.before(t, "window.setTimeout = () => 0; window.setInterval = () => 0")
	v.open(t, s.page("/", s.script()+playing(video, "")))
	s.wait(t, video, "play", 4)
	l.wantViewers(t, video, 1)
}

// quiet waits until no request of the page is under way any more.
func (v *tab) quiet(t *testing.T) {
	t.Helper()
	v.until(t, "!window.underWay")
}

// watchRequests notes when the pages that are opened after it make requests, and
// how many are under way. A request is, until its answer is read: what the script
// does with it then comes before anything that a test can ask the page.
func (v *tab) watchRequests(t *testing.T) {
	t.Helper()
	v.before(t, `window.sent = []
		window.underWay = 0
		const original = fetch
		const done = () => { underWay-- }
		window.fetch = async (...args) => {
			sent.push([String(args[0]), performance.now()])
			underWay++
			const answer = await original(...args).catch((why) => { done(); throw why })
			if (!answer.ok || answer.status == 204) done()
			else {
				const read = answer.json.bind(answer)
				answer.json = () => read().finally(done)
			}
			return answer
		}`)
}

// pauses are how long the page that watchRequests watches waited between its
// requests for what, in ms, by its own clock: their way to the server takes as
// long as it takes.
func (v *tab) pauses(t *testing.T, what string) (pauses []float64) {
	t.Helper()
	sent := eval[[]float64](t, v, "sent.filter(([url]) => url.includes('"+what+"')).map(([, at]) => at)")
	for i := range len(sent) - 1 {
		pauses = append(pauses, sent[i+1]-sent[i])
	}
	return pauses
}

func testClose(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.watchRequests(t)
	v.open(t, s.page("/", s.script()+playing(video, "")))
	played := s.wait(t, video, "play", 2)
	l.wantViewers(t, video, 1)
	v.run(t, "v"+video+".pause()")
	v.until(t, "v"+video+".paused")
	v.quiet(t)
	v.close(t)
	left := s.wait(t, video, "leave", 1)
	l.wantViewers(t, video, 0)
	if a, b := played.message(t).ViewerID, left.message(t).ViewerID; a != b {
		t.Errorf("viewer %q left, want %q", b, a)
	}
	if left.message(t).RecordedAt == nil {
		t.Errorf("leave = %s, want it guarded by recorded_at", left.Body)
	}
}

// Who closes the page before their first play is answered must not stay behind.
func testCloseEarly(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	closed := make(chan struct{})
	s.block(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/play") {
			<-closed
		}
		return false
	})
	v.open(t, s.page("/", s.script()+playing(video, "")))
	s.wait(t, video, "play", 1)
	v.close(t)
	left := s.wait(t, video, "leave", 1)
	close(closed)
	if left.message(t).RecordedAt != nil || left.message(t).ViewerID == "" {
		t.Errorf("leave = %s, want the viewer without recorded_at, which is not known", left.Body)
	}
}

func testTabs(t *testing.T, l *lab) {
	s, first, video := l.site(t), l.browser.visitor(t), l.video()
	url := s.page("/", s.script()+playing(video, ""))
	first.open(t, url)
	a := s.wait(t, video, "play", 1)
	second := first.sibling(t)
	second.open(t, url)
	second.until(t, "v"+video+".currentTime > 0")
	s.more(t, video, 4)
	for _, r := range s.sent(video, "play") {
		if got, want := r.message(t).ViewerID, a.message(t).ViewerID; got != want {
			t.Fatalf("two tabs are viewers %q and %q, want one", got, want)
		}
	}
	l.wantViewers(t, video, 1)

	second.close(t) // its plays are as new as the other's
	s.more(t, video, 3)
	s.wantSent(t, video, "leave", 0)
	l.wantViewers(t, video, 1)
	first.close(t)
	s.wait(t, video, "leave", 1)
	l.wantViewers(t, video, 0)
}

func testKill(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.open(t, s.page("/", s.script()+playing(video, "")))
	s.wait(t, video, "play", 2)
	l.wantViewers(t, video, 1)
	v.kill(t)
	l.wantViewers(t, video, 0)
	s.wantSent(t, video, "leave", 0)
}

// Chromium pauses videos that go to the cache; any other player just goes on.
func testBackForwardCache(t *testing.T, l *lab) {
	s, v, video, other := l.site(t), l.browser.visitor(t), l.video(), l.video()
	elsewhere := s.page("/elsewhere", "<p>Elsewhere")
	v.open(t, s.page("/", s.script()+playing(video, "")+`<script>
		addEventListener('pageshow', (e) => { window.back = e.persisted })
		Headcount.trackPlayer({ videoId: `+other+` }).play()
	</script>`))
	s.wait(t, video, "play", 1)
	s.wait(t, other, "play", 1)
	v.open(t, elsewhere)
	for _, id := range []string{video, other} {
		s.wait(t, id, "leave", 1)
		l.wantViewers(t, id, 0)
	}
	plays := len(s.sent(video, "play"))
	v.back(t)
	s.more(t, other, 2)
	l.wantViewers(t, other, 1)
	if !eval[bool](t, v, "!!window.back") {
		t.Error("the page was loaded anew, and not taken from the cache")
	}
	s.wantSent(t, video, "play", plays)
	v.run(t, "v"+video+".play()")
	s.wait(t, video, "play", plays+1)
	l.wantViewers(t, video, 1)
	v.wantQuiet(t)
}

// A sandboxed page has no storage: asking for it throws.
func testBlockedStorage(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.open(t, s.page("/", s.script()+playing(video, ""), "Content-Security-Policy", "sandbox allow-scripts"))
	if !eval[bool](t, v, "(() => { try { return !localStorage } catch { return true } })()") {
		t.Fatal("storage is not blocked")
	}
	first := s.wait(t, video, "play", 1).message(t).ViewerID
	if again := s.wait(t, video, "play", 3).message(t).ViewerID; again != first || first == "" {
		t.Errorf("viewer ids of one page: %q, %q; want the same", first, again)
	}
	l.wantViewers(t, video, 1)
	v.do(t, chromedp.Reload())
	s.wait(t, video, "leave", 1)
	programtest.Eventually(t, "another page is another viewer", func() bool {
		sent := s.sent(video, "play")
		return sent[len(sent)-1].message(t).ViewerID != first
	})
	l.wantViewers(t, video, 1)
	v.wantQuiet(t)
}

func testAnyPlayer(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	v.before(t, "delete Navigator.prototype.sendBeacon") // as some privacy settings do
	v.watchRequests(t)
	v.open(t, s.page("/", s.script()))
	v.run(t, `var player = Headcount.trackPlayer({ videoId: `+video+`, viewerId: 'ann' }); player.play(); player.play()`)
	s.wait(t, video, "play", 3)
	l.wantViewers(t, video, 1)
	v.run(t, "player.leave(); player.leave()")
	s.wait(t, video, "leave", 1)
	l.wantViewers(t, video, 0)
	v.run(t, "player.play()")
	l.wantViewers(t, video, 1)
	v.run(t, "player.pause()")
	v.quiet(t)
	v.close(t)
	s.wait(t, video, "leave", 2)
	l.wantViewers(t, video, 0)
	for _, r := range s.all() {
		if r.message(t).ViewerID != "ann" || strings.Contains(r.Body, "token") {
			t.Errorf("sent %s, want viewer ann without a token", r.Body)
		}
	}
}
