package browsertest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// board is a site whose operator looks at it: programs on a Redis of their own.
type board struct {
	browser                  *browser
	redis                    *redistest.Server
	recorder                 *programtest.Program
	public, console, workers string // URLs
	viewers                  int    // over all videos
}

const (
	boardVideos = 24
	odd         = `<b>odd</b> & "quoted"/日本` // an id that is shown as it is
	oddPlace    = 18                         // of that video
	boardOnline = 240
)

func startBoard(t *testing.T) *board {
	b := &board{browser: startBrowser(t), redis: redistest.Start(t)}
	for id, scale := range map[string]float64{"": 1, odd: 0.05} {
		seedHistory(t, b.redis.Client(), keys.New("video").History(id), scale)
	}
	env := programtest.Env(b.redis.Addr(), "video", "HEADCOUNT_WORKER_INTERVAL=1s", "HEADCOUNT_REDIS_TIMEOUT=1s", "HEADCOUNT_RECORDER_BEAT_AFTER=5m")
	b.recorder = programtest.Exec(t, programtest.Build(t, "recorder"), env)
	b.public, b.console = b.recorder.URL(t, "public"), b.recorder.URL(t, "admin")+"/console/"
	for i := range boardVideos {
		id := fmt.Sprintf("course-%d/lesson-%02d", 101+i%5, i+1)
		if i == oddPlace-1 {
			id = odd
		}
		b.play(t, id, boardOnline/(i+1))
	}
	b.workers = programtest.Exec(t, programtest.Build(t, "worker"), env).URL(t, "admin") + "/console/"
	return b
}

// seedHistory writes a day as passes would have.
func seedHistory(t *testing.T, rdb *redis.Client, key string, scale float64) {
	t.Helper()
	now := time.Now()
	for at := now.Add(-24 * time.Hour); at.Before(now.Add(-time.Minute)); at = at.Add(4 * time.Minute) {
		hour := now.Sub(at).Hours()
		viewers := 620 + 260*math.Cos(hour/24*2*math.Pi) + 60*math.Sin(hour*1.7) + 14*math.Sin(hour*23)
		err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: key, ID: strconv.FormatInt(at.UnixMilli(), 10), Values: []any{"viewers", int(scale * viewers)}}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// play has viewers play a video; each of them is one on the site.
func (b *board) play(t *testing.T, id string, viewers int) {
	t.Helper()
	var plays []string
	for i := range viewers {
		plays = append(plays, fmt.Sprintf(`{"video_id":%s,"viewer_id":"u%d"}`, strconv.Quote(id), i))
	}
	programtest.Post(t, b.public+"/v1/plays", `{"plays":[`+strings.Join(plays, ",")+`]}`).OK(t)
	b.viewers += viewers
}

// open opens a console and waits for its numbers.
func (b *board) open(t *testing.T, url string, before ...string) *tab {
	t.Helper()
	v := b.browser.visitor(t)
	v.before(t, "window.violations = []; document.addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective))")
	for _, script := range before {
		v.before(t, script)
	}
	v.open(t, url)
	v.until(t, "/[0-9]/.test(document.getElementById('viewers').textContent) && document.querySelectorAll('#top a').length > 0")
	return v
}

func (v *tab) shows(t *testing.T, id, want string) {
	t.Helper()
	v.until(t, fmt.Sprintf("document.getElementById(%q).textContent == %q", id, want))
}

func (v *tab) wantStrict(t *testing.T) {
	t.Helper()
	if got := eval[[]string](t, v, "violations"); len(got) > 0 {
		t.Errorf("violations: %q", got)
	}
	foreign := "performance.getEntriesByType('resource').map((r) => r.name).filter((n) => !n.startsWith(location.origin + '/console/'))"
	if got := eval[[]string](t, v, foreign); len(got) > 0 {
		t.Errorf("loaded from elsewhere: %q", got)
	}
	v.wantQuiet(t)
}

// Of several kinds one is shown, and the others are a link away.
func TestConsoleOfKinds(t *testing.T) {
	t.Parallel()
	b := &board{browser: startBrowser(t), redis: redistest.Start(t)}
	long := "campaign_of_the_whole_year_2026_x"[:32]
	env := programtest.Env(b.redis.Addr(), "video", "HEADCOUNT_KINDS=video,live,"+long, "HEADCOUNT_WORKER_INTERVAL=1s", "HEADCOUNT_REDIS_TIMEOUT=1s")
	recorder := programtest.Exec(t, programtest.Build(t, "recorder"), env)
	for path, viewers := range map[string]int{"videos": 2, "lives": 3} {
		for i := range viewers {
			programtest.Post(t, fmt.Sprintf("%s/v1/%s/10001/play", recorder.URL(t, "public"), path), fmt.Sprintf(`{"viewer_id":"u%d"}`, i)).OK(t)
		}
	}
	programtest.Exec(t, programtest.Build(t, "worker"), env)
	v := b.open(t, recorder.URL(t, "admin")+"/console/")
	v.do(t, chromedp.EmulateViewport(375, 700))
	v.shows(t, "viewers", "2")
	v.until(t, "document.querySelector('#settings').textContent.includes("+strconv.Quote("kindsvideo, live, "+long)+")")
	v.shows(t, "online", "3")
	v.until(t, "document.documentElement.scrollWidth <= 375") // once the chart has followed
	current := "document.querySelector('#kinds [aria-current=page]')?.textContent"
	v.until(t, current+" == 'video' && document.querySelectorAll('#kinds a').length == 3")
	v.run(t, "document.querySelectorAll('#kinds a')[1].focus()")
	v.do(t, chromedp.KeyEvent("\r"))
	v.until(t, current+" == 'live'")
	v.shows(t, "viewers", "3")
	v.shows(t, "online", "3")
	v.run(t, "document.querySelector('#top a').click()")
	v.shows(t, "video-viewers", "3")
	v.run(t, "document.querySelector('#video button').click()")
	v.until(t, "location.search == '?kind=live' && location.hash == ''")
	v.wantStrict(t)
}

// TestConsole looks at one board, and then breaks it.
func TestConsole(t *testing.T) {
	t.Parallel()
	b := startBoard(t)
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *board){
			"a video by keyboard":     testConsoleVideo,
			"widths and themes":       testConsoleLooks,
			"in Chinese":              testConsoleChinese,
			"for screen readers":      testConsoleNames,
			"of a worker":             testConsoleOfWorker,
			"an address that is none": testConsoleAddresses,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, b)
			})
		}
	})
	t.Run("numbers", func(t *testing.T) { testConsoleNumbers(t, b) })
	t.Run("Redis stopped", func(t *testing.T) { testConsoleWithoutRedis(t, b) })
	t.Run("the program stopped", func(t *testing.T) { testConsoleWithoutProgram(t, b) })
}

func testConsoleNumbers(t *testing.T, b *board) {
	v := b.open(t, b.console)
	v.shows(t, "viewers", strconv.Itoa(b.viewers))
	v.shows(t, "online", strconv.Itoa(boardOnline))
	v.shows(t, "videos", strconv.Itoa(boardVideos))
	v.until(t, "Math.abs(document.getElementById('uniques').textContent - 240) < 12 && document.getElementById('plays').textContent > 800")
	v.until(t, "document.querySelector('#chart canvas') && document.getElementById('chart').ariaLabel.includes('now')")
	v.until(t, "document.querySelectorAll('#passes tbody tr').length > 2 && document.querySelectorAll('#redis tbody tr').length == 1")
	v.until(t, "document.querySelector('#leader').textContent.includes('has led since')")
	v.until(t, "document.querySelector('#settings').textContent.includes('stats.time_zone'+'UTC')")
	v.until(t, "!document.getElementById('peak-note').textContent.includes('UTC')")
	call(t, v, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Shanghai"})
	v.until(t, "document.getElementById('peak-note').textContent.endsWith('; days of UTC')")
	v.until(t, "document.querySelectorAll('#rates tr').length >= 5 && !document.getElementById('well').hidden")

	b.play(t, "new", 30) // it updates by itself
	v.shows(t, "viewers", strconv.Itoa(b.viewers))
	v.shows(t, "videos", strconv.Itoa(boardVideos+1))
	v.until(t, "[...document.querySelectorAll('#top a')].some((a) => a.textContent == 'new')")
	v.wantStrict(t)
}

// By keyboard alone: from the first stop to a video of the list, into it and back.
func testConsoleVideo(t *testing.T, b *board) {
	v := b.open(t, b.console)
	at := "document.activeElement"
	v.do(t, chromedp.KeyEvent("\t"))
	if got := eval[string](t, v, at+".className"); got != "skip" {
		t.Errorf("the first stop is %q, want the link that skips the header", got)
	}
	for i := 0; eval[string](t, v, at+".textContent") != odd; i++ {
		if i > 40 {
			t.Fatalf("the list is not reached by the keyboard, but %q", eval[string](t, v, at+".outerHTML"))
		}
		v.do(t, chromedp.KeyEvent("\t"))
	}
	v.do(t, chromedp.KeyEvent("\r"))
	v.until(t, "document.getElementById('video').open")
	v.shows(t, "video-name", odd)
	v.shows(t, "video-viewers", strconv.Itoa(boardOnline/oddPlace))
	v.shows(t, "video-plays", strconv.Itoa(boardOnline/oddPlace))
	v.until(t, "document.querySelector('#video-chart canvas')")
	if eval[int](t, v, "document.querySelectorAll('#top b, #video-name b').length") > 0 {
		t.Error("an id is taken for HTML")
	}
	b.photograph(t, v, "console-video-light", 1280, 900)
	v.do(t, chromedp.KeyEvent("\x1b"))
	v.until(t, "!document.getElementById('video').open && location.hash == ''")
	v.until(t, at+".textContent == "+strconv.Quote(odd))
	v.wantStrict(t)
}

func testConsoleLooks(t *testing.T, b *board) {
	v := b.open(t, b.console)
	v.until(t, "document.querySelector('#chart canvas') && document.querySelectorAll('#rates tr').length >= 5")
	papers := map[string]bool{}
	for _, theme := range []string{"light", "dark"} {
		call(t, v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		papers[eval[string](t, v, "getComputedStyle(document.body).backgroundColor")] = true
		for _, size := range [][2]int64{{375, 2600}, {1280, 900}, {1920, 1400}} {
			v.do(t, chromedp.EmulateViewport(size[0], size[1]))
			v.until(t, "Math.abs(document.querySelector('#chart .uplot').clientWidth - document.querySelector('#chart').clientWidth) < 2")
			if wide := eval[int](t, v, "document.documentElement.scrollWidth"); int64(wide) > size[0] {
				t.Errorf("the page is %d wide on a screen of %d", wide, size[0])
			}
			b.photograph(t, v, fmt.Sprintf("console-%s-%d", theme, size[0]), size[0], size[1])
		}
	}
	if len(papers) != 2 {
		t.Errorf("papers: %v, want one for each theme", papers)
	}
	v.wantStrict(t)
}

// photograph writes a screenshot, if they are asked for.
func (b *board) photograph(t *testing.T, v *tab, name string, width, height int64) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	v.do(t, chromedp.EmulateViewport(width, height))
	picture, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600); err != nil {
		t.Fatal(err)
	}
}

func testConsoleChinese(t *testing.T, b *board) {
	v := b.open(t, b.console, "Object.defineProperty(navigator, 'language', { value: 'zh-CN' })")
	v.until(t, "document.querySelectorAll('#rates tr').length >= 5")
	if got := eval[string](t, v, "document.documentElement.lang + ' ' + document.title"); got != "zh-CN Headcount：控制台" {
		t.Errorf("the page's language and title are %q", got)
	}
	said := eval[string](t, v, "document.body.innerText")
	for _, english := range []string{"undefined", "NaN", "Viewers", "Skipped", "updated", "unknown", "noeviction off"} {
		if strings.Contains(said, english) {
			t.Errorf("the page says %q: %s", english, said)
		}
	}
	missing := eval[[]string](t, v, `import('/console/text.js').then(({ words: { en, zh } }) => [
		...Object.keys(en).filter((key) => !(key in zh)),
		...Object.keys(en.warningOf).filter((key) => !(key in zh.warningOf)),
		...[...document.querySelectorAll('[data-text]')].map((e) => e.dataset.text).filter((key) => !(key in zh))])`)
	if len(missing) > 0 {
		t.Errorf("not translated: %q", missing)
	}
	v.run(t, "location.hash = '#runbook=headcountnoleader'")
	v.until(t, "document.querySelectorAll('#runbook-text p').length > 1 && document.getElementById('runbook-text').lang == 'en'")
	v.shows(t, "runbook-note", "以下说明只有英文。")
	b.photograph(t, v, "console-runbook-zh", 375, 900)
	v.wantStrict(t)
}

func testConsoleNames(t *testing.T, b *board) {
	v := b.open(t, b.console)
	v.until(t, "document.querySelector('#chart canvas')")
	var headings []string
	charts := 0
	for _, n := range v.accessible(t) {
		switch n.role {
		case "heading":
			headings = append(headings, n.name)
		case "image":
			charts++
			if !strings.Contains(n.name, "at the highest") {
				t.Errorf("an image is called %q, want what the chart shows", n.name)
			}
		case "link", "button", "table", "region":
			if n.name == "" {
				t.Errorf("a %s without a name", n.role)
			}
		}
	}
	if charts != 1 {
		t.Errorf("%d images, want the chart", charts)
	}
	want := []string{"Headcount recorder dev", "Viewers over 24 hours", "Most viewers", "Last passes", "This program, per second", "Redis", "What is switched on"}
	if !slices.Equal(headings, want) {
		t.Errorf("headings: %q, want %q", headings, want)
	}
	if got := eval[int](t, v, "[...document.querySelectorAll('th')].filter((th) => !th.scope && !th.closest('.u-legend')).length"); got > 0 {
		t.Errorf("%d header cells do not say of what", got)
	}
}

func testConsoleOfWorker(t *testing.T, b *board) {
	v := b.open(t, b.workers)
	v.until(t, "document.getElementById('program').textContent == 'worker dev'")
	v.until(t, "document.getElementById('rates-note').textContent.includes('recorders’ pages') && document.getElementById('rates').hidden")
	v.until(t, "document.querySelectorAll('#passes tbody tr').length > 2")
	v.wantStrict(t)
}

// An address leads to what it names, and one that nobody wrote to nothing.
func testConsoleAddresses(t *testing.T, b *board) {
	v := b.open(t, b.console+"#video=course-101%2Flesson-01")
	v.shows(t, "video-viewers", strconv.Itoa(boardOnline))
	v.run(t, "location.hash = '#video=%'")
	v.until(t, "!document.getElementById('video').open")
	v.run(t, "location.hash = '#runbook=none'")
	v.until(t, "document.getElementById('runbook-note').textContent.includes('There is no entry')")
	v.run(t, "document.querySelector('#runbook button').click()")
	v.until(t, "!document.getElementById('runbook').open && location.hash == ''")
	v.wantStrict(t)
}

func testConsoleWithoutRedis(t *testing.T, b *board) {
	v := b.open(t, b.console)
	b.redis.Kill(t)
	warning := "document.getElementById('warning-list').textContent"
	v.until(t, warning+".includes('does not answer') && document.getElementById('well').hidden")
	v.shows(t, "viewers", "unknown")
	v.until(t, "document.querySelectorAll('#settings tr').length > 10 && document.getElementById('offline').hidden")
	b.photograph(t, v, "console-warning-light", 1280, 900)
	v.run(t, "document.querySelector('#warning-list a').focus()")
	v.do(t, chromedp.KeyEvent("\r"))
	v.until(t, "document.getElementById('runbook').open && document.querySelectorAll('#runbook-text p').length > 1")
	b.photograph(t, v, "console-runbook-light", 1280, 900)
	v.do(t, chromedp.KeyEvent("\x1b"))
	b.redis.Restart(t)
	v.until(t, "!document.getElementById('well').hidden && "+warning+" == ''")
	v.shows(t, "viewers", "0")
	v.wantStrict(t)
}

func testConsoleWithoutProgram(t *testing.T, b *board) {
	v := b.browser.visitor(t)
	v.open(t, b.console)
	v.shows(t, "viewers", "0")
	if err := b.recorder.Stop(t); err != nil {
		t.Fatal(err)
	}
	v.until(t, "!document.getElementById('offline').hidden && document.getElementById('offline').textContent.includes('The numbers are those of')")
	v.wantQuiet(t)
}
