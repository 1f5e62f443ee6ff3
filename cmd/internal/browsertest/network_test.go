package browsertest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// cut breaks the connection, as a blocked address does.
func cut(w http.ResponseWriter, _ *http.Request) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

func testBlockedEndpoint(t *testing.T, l *lab) {
	s, v, video := l.site(t), l.browser.visitor(t), l.video()
	s.block(cut)
	v.watchRequests(t)
	v.open(t, s.page("/", s.script()+playing(video, "")+`<viewer-count video-id="`+video+`">`))
	s.wait(t, video, "play", 3)
	if seconds := eval[float64](t, v, "v"+video+".currentTime"); seconds < 1 {
		t.Errorf("%g seconds are played, want playback to go on", seconds)
	}
	if pauses := v.pauses(t, "/play"); pauses[0] < 450 || pauses[1] < 950 {
		t.Errorf("tried again after %v ms, want longer and longer pauses", pauses)
	}
	v.until(t, "document.querySelector('viewer-count').getAttribute('state') == 'offline'")
	if messages, _ := v.said(); len(messages) != 1 {
		t.Errorf("it logged %q, want one message", messages)
	}
	v.wantQuiet(t)

	s.block(nil)
	l.wantViewers(t, video, 1)
	v.wantQuiet(t)
}

// respond answers plays like this.
func respond(status int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		return true
	}
}

func testRefusals(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	refused, busy, other := l.video(), l.video(), l.video()
	hurdles := map[string]func(http.ResponseWriter, *http.Request) bool{
		"/v1/videos/" + refused + "/play": respond(http.StatusForbidden),
		"/v1/videos/" + busy + "/play":    respond(http.StatusTooManyRequests, "Retry-After", "3"),
	}
	s.block(func(w http.ResponseWriter, r *http.Request) bool {
		hurdle := hurdles[r.URL.Path]
		return hurdle != nil && hurdle(w, r)
	})
	v.watchRequests(t)
	v.open(t, s.page("/", s.script()+playing(refused, "")+playing(busy, "")+playing(other, "")+
		`<viewer-count video-id="`+other+`" refresh="2592000"></viewer-count><viewer-count video-id="`+busy+`" refresh="Infinity"></viewer-count>`))
	s.wait(t, other, "play", 3)
	if n := len(s.lookups()); n != 1 {
		t.Errorf("%d refreshes, want one, and the next in 30 days", n)
	}
	s.wait(t, busy, "play", 2)
	if pause := v.pauses(t, busy+"/play")[0]; pause < 2950 {
		t.Errorf("tried again after %g ms, want the 3s of Retry-After", pause)
	}
	s.wantSent(t, refused, "play", 1) // trying again would not help
	v.wantQuiet(t)

	// What ends and plays again is another play.
	v.run(t, fmt.Sprintf("v%[1]s.src = '/sound?seconds=1'; v%[1]s.onended = () => { window.ended = true }", refused))
	v.until(t, "window.ended")
	s.block(nil)
	v.run(t, "v"+refused+".play()")
	s.wait(t, refused, "play", 2)
}

// A page of another origin counts without asking first, and may ask.
func testCrossOrigin(t *testing.T, l *lab) {
	s, elsewhere, v, video := l.site(t), l.site(t), l.browser.visitor(t), l.video()
	v.open(t, elsewhere.page("/", s.script()+playing(video, "")+`<viewer-count video-id="`+video+`" refresh="1"></viewer-count>`))
	s.wait(t, video, "play", 2)
	v.until(t, "document.querySelector('viewer-count').viewers == 1")
	preflights := func() (n int) {
		for _, r := range s.all() {
			if r.Method == http.MethodOptions {
				n++
			}
		}
		return n
	}
	if n := preflights(); n != 0 {
		t.Errorf("%d preflights, want none", n)
	}
	status := eval[int](t, v, `fetch('`+s.URL+`/v1/videos/`+video+`/play', {
		method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"viewer_id":"bob"}' }).then((r) => r.status)`)
	if n := preflights(); status != http.StatusOK || n != 1 {
		t.Errorf("a play as application/json: %d after %d preflights, want 200 after 1", status, n)
	}
	l.wantViewers(t, video, 2)

	v.close(t)
	s.wait(t, video, "leave", 1)
	l.wantViewers(t, video, 1) // bob
	if n := len(elsewhere.all()); n != 0 {
		t.Errorf("%d requests to the page's own origin, want none", n)
	}
}

func testPolicy(t *testing.T, l *lab) {
	s, elsewhere, v, video := l.site(t), l.site(t), l.browser.visitor(t), l.video()
	policy := "default-src 'none'; media-src 'self'; script-src " + s.URL + "; connect-src " + s.URL + "; require-trusted-types-for 'script'; trusted-types 'none'"
	v.before(t, "window.violations = []; document.addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective))")
	v.open(t, elsewhere.page("/", s.script()+playing(video, "")+`<viewer-count video-id="`+video+`" refresh="1"></viewer-count>`,
		"Content-Security-Policy", policy))
	l.wantViewers(t, video, 1)
	v.until(t, "document.querySelector('viewer-count').viewers == 1")
	if got := eval[string](t, v, "getComputedStyle(document.querySelector('viewer-count')).display"); got != "inline-block" {
		t.Errorf("display = %s, want inline-block: its style is not applied", got)
	}
	if got := eval[[]string](t, v, "violations"); len(got) > 0 {
		t.Errorf("violations: %q", got)
	}
	v.wantQuiet(t)
}

// A page that loads both forms has one of it.
func testModule(t *testing.T, l *lab) {
	s, elsewhere, v, video, other := l.site(t), l.site(t), l.browser.visitor(t), l.video(), l.video()
	module := `<script type="module">
		import Headcount, { trackVideo } from '` + s.URL + `/headcount.mjs'
		window.same = Headcount == window.Headcount && Headcount.trackVideo == trackVideo
		window.tracker = trackVideo(v` + other + `, { videoId: '` + other + `' })
	</script>`
	other2 := fmt.Sprintf(`<video id="v%s" src="/sound" autoplay></video>`, other)
	v.open(t, elsewhere.page("/", module+s.script()+s.script()+playing(video, "")+other2))
	v.until(t, "window.same")
	s.wait(t, other, "play", 3)
	got, want := len(s.sent(video, "play")), len(s.sent(other, "play"))
	if got < want-2 || got > want+2 {
		t.Errorf("%d plays of one video and %d of the other, want each counted once", got, want)
	}
	v.run(t, "tracker.stop()")
	l.wantViewers(t, other, 0)

	alone := l.browser.visitor(t)
	alone.open(t, elsewhere.page("/alone", `<script type="module" src="`+s.URL+`/headcount.mjs"></script>`+playing(other, "")))
	l.wantViewers(t, other, 1) // its endpoint is where the module came from
}

func testOptions(t *testing.T, l *lab) {
	s, elsewhere, v := l.site(t), l.site(t), l.browser.visitor(t)
	given, token, renewed, empty, number := l.video(), l.video(), l.video(), l.video(), l.video()
	var plays atomic.Int32
	s.block(func(w http.ResponseWriter, r *http.Request) bool {
		plays.Add(1)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = fmt.Fprint(w, `{"recorded_at":1700000000,"beat_after":1}`)
		return true
	})
	v.open(t, elsewhere.page("/", `<script src="/headcount.js" data-endpoint="`+s.URL+`/"></script>`+
		playing(given, `data-headcount-viewer="ann"`)+playing(token, `data-headcount-token="t1"`)+playing(empty, `data-headcount-viewer=""`)))
	if got := s.wait(t, given, "play", 1).message(t); got.ViewerID != "ann" || got.Token != "" {
		t.Errorf("a given viewer: sent %+v", got)
	}
	if got := s.wait(t, token, "play", 1).message(t); got.ViewerID != "" || got.Token != "t1" {
		t.Errorf("a token: sent %+v, want it alone, as it names the viewer", got)
	}
	if got := s.wait(t, empty, "play", 1).message(t); len(got.ViewerID) < 20 {
		t.Errorf("an empty viewer: sent %+v, want a random one", got)
	}
	v.run(t, `Headcount.trackPlayer({ videoId: `+number+`, viewerId: 42, endpoint: new URL('`+s.URL+`') }).play()`)
	if got := s.wait(t, number, "play", 1).message(t); got.ViewerID != "42" {
		t.Errorf("a number and a URL: sent %+v, want viewer 42 as text", got)
	}
	v.run(t, "v"+token+".dataset.headcountToken = 't2'")
	s.more(t, token, 2)
	if got := s.sent(token, "play"); got[len(got)-1].message(t).Token != "t2" {
		t.Errorf("after the page renewed the token: sent %s", got[len(got)-1].Body)
	}
	v.run(t, `Headcount.trackPlayer({ videoId: '`+renewed+`', viewerId: 'ann', token: async () => 'fresh' }).play()`)
	if got := s.wait(t, renewed, "play", 1).message(t); got.ViewerID != "ann" || got.Token != "fresh" {
		t.Errorf("a token that is asked for: sent %+v", got)
	}

	// Mistakes of the page are told once, and change nothing for it.
	v.run(t, `
		Headcount.trackPlayer({ videoId: 'count:1' }).play()
		Headcount.trackPlayer({ videoId: '\ud800' }).play()
		Headcount.trackPlayer({ videoId: 'x'.repeat(257) }).play()
		Headcount.trackPlayer().play()
		Headcount.trackPlayer(null).play()
		Headcount.trackVideo(document.createElement('video'), null).stop()
		Headcount.trackVideo(null).stop()`)
	v.wantQuiet(t)
	v.close(t)
	if got := s.wait(t, token, "leave", 1).message(t); got.Token != "t2" {
		t.Errorf("the leave has token %q, want t2", got.Token)
	}
}

// takeGood answers plays as a server does that takes one token only.
func takeGood(w http.ResponseWriter, r *http.Request) bool {
	if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), `"token":"good"`) {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	_, _ = fmt.Fprint(w, `{"recorded_at":1700000000,"beat_after":1}`)
	return true
}

func testTokens(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	late, healed, asked, other := l.video(), l.video(), l.video(), l.video()
	s.block(takeGood)
	v.open(t, s.page("/", s.script()+fmt.Sprintf(`<video id="v%[1]s" data-headcount="%[1]s" src="/sound"></video>`, late)+
		playing(healed, `data-headcount-token="old"`)+playing(other, `data-headcount-token="good"`)))
	s.more(t, other, 3)
	s.wantSent(t, healed, "play", 1) // the same token would be refused again
	v.run(t, "v"+healed+".dataset.headcountToken = 'good'; v"+late+".dataset.headcountToken = 'good'")
	if got := s.wait(t, healed, "play", 2).message(t); got.Token != "good" {
		t.Errorf("after the page renewed a token that was refused: sent %+v", got)
	}
	v.run(t, "v"+late+".play()")
	if got := s.wait(t, late, "play", 1).message(t); got.Token != "good" || got.ViewerID != "" {
		t.Errorf("a token that came after the video: sent %+v, want it alone", got)
	}
	v.wantQuiet(t)

	// At once: a failed beat would be told, and tried again later.
	w := l.browser.visitor(t)
	w.open(t, s.page("/asked", s.script()+`<script>
		const tokens = ['old', 'good']
		Headcount.trackPlayer({ videoId: `+asked+`, token: () => tokens.shift() ?? 'good' }).play()
	</script>`))
	if got := s.wait(t, asked, "play", 2).message(t); got.Token != "good" {
		t.Errorf("after a refusal: sent %+v, want another token", got)
	}
	w.until(t, "tokens.length == 0")
	if messages, exceptions := w.said(); len(messages)+len(exceptions) > 0 {
		t.Errorf("it logged %q and threw %q, want another token asked for at once", messages, exceptions)
	}
}

// Whatever a page's function throws, the player asks it again.
func testTokenFailures(t *testing.T, l *lab) {
	s, v := l.site(t), l.browser.visitor(t)
	s.block(takeGood)
	v.open(t, s.page("/", s.script()))
	for _, why := range []string{"undefined", "null", "'no'", "{ headers: {} }", "{ headers: null }", "Object.create(null)"} {
		video := l.video()
		v.run(t, `{
			let asked = 0
			Headcount.trackPlayer({ videoId: `+video+`, token: async () => { if (!asked++) throw `+why+`; return 'good' } }).play()
		}`)
		s.wait(t, video, "play", 1)
	}
	v.wantQuiet(t)
}
