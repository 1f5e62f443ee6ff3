package browsertest

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"headcount/internal/programtest"
)

// browser is one Chromium with a profile of its own, shared by all tests.
type browser struct{ ctx context.Context }

func startBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("the tests in a browser need chromium (scripts/setup.sh chromium): %v", err)
	}
	allocator, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()),
		chromedp.ExecPath(path),
		chromedp.Headless,
		chromedp.NoSandbox,
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("mute-audio", true),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
	)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("stop chromium: %v", err)
		}
		cancel()
	})
	return &browser{ctx}
}

// tab is one tab. Tabs of one visitor share storage, those of others do not.
type tab struct {
	ctx  context.Context
	quit context.CancelFunc

	mu      sync.Mutex
	console []chromedp.ConsoleMessage
}

// visitor opens an empty tab in a profile of its own.
func (b *browser) visitor(t *testing.T) *tab {
	t.Helper()
	return newTab(b.ctx, t, chromedp.WithNewBrowserContext())
}

// sibling opens another tab of the same visitor.
func (v *tab) sibling(t *testing.T) *tab {
	t.Helper()
	return newTab(v.ctx, t)
}

func newTab(parent context.Context, t *testing.T, opts ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, opts...)
	v := &tab{ctx: ctx, quit: cancel}
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			v.mu.Lock()
			v.console = append(v.console, m)
			v.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // it may be closed or dead already
		reading.Wait()
		if t.Failed() {
			t.Logf("console: %v", v.console)
		}
	})
	return v
}

// do runs steps, in the time that any wait may take.
func (v *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, programtest.Limit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func (v *tab) open(t *testing.T, url string) {
	t.Helper()
	v.do(t, chromedp.Navigate(url))
}

// back goes to the page before this one. A page that comes from the cache is not
// loaded, so there is nothing to wait for.
func (v *tab) back(t *testing.T) {
	t.Helper()
	history := call(t, v, page.GetNavigationHistory, cdp.Empty{})
	call(t, v, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: history.Entries[history.CurrentIndex-1].ID})
}

// run runs a script that is no expression.
func (v *tab) run(t *testing.T, script string) {
	t.Helper()
	v.do(t, chromedp.Evaluate[chromedp.Void](script))
}

// eval returns what a script, which may be a promise, results in.
func eval[T any](t *testing.T, v *tab, script string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, programtest.Limit)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return got
}

// until waits until a script's result is true.
func (v *tab) until(t *testing.T, script string) {
	t.Helper()
	programtest.Eventually(t, script, func() bool { return eval[bool](t, v, "!!("+script+")") })
}

// call sends a command of the DevTools protocol.
func call[P, R any](t *testing.T, v *tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, programtest.Limit)
	defer cancel()
	got, err := chromedp.Call(ctx, command, params)
	if err != nil {
		t.Fatalf("%s: %v", command.Method, err)
	}
	return got
}

// before runs a script in each page that the tab loads, before the page's own.
func (v *tab) before(t *testing.T, script string) {
	t.Helper()
	call(t, v, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// close closes the tab as a person does: the page is told.
func (v *tab) close(t *testing.T) {
	t.Helper()
	call(t, v, page.Close, cdp.Empty{})
}

// kill ends the page's process: it is not told.
func (v *tab) kill(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, 2*time.Second)
	defer cancel()
	_, _ = chromedp.Call(ctx, page.Crash, cdp.Empty{}) // who has crashed does not answer
}

// said returns what the page wrote to the console, and the exceptions that
// nobody caught. What the browser itself writes, such as of requests that
// failed, is left out.
func (v *tab) said() (messages, exceptions []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.console {
		switch {
		case m.IsException():
			exceptions = append(exceptions, m.String())
		case strings.Contains(m.String(), "Headcount"):
			messages = append(messages, m.String())
		}
	}
	return messages, exceptions
}

// wantQuiet checks that the page has neither thrown nor logged more than once.
func (v *tab) wantQuiet(t *testing.T) {
	t.Helper()
	messages, exceptions := v.said()
	if len(messages) > 1 {
		t.Errorf("it logged %d times, want once at most: %q", len(messages), messages)
	}
	if len(exceptions) > 0 {
		t.Errorf("uncaught exceptions: %q", exceptions)
	}
}
