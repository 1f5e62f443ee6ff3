// Package browsertest loads what web holds in a real browser, against the
// programs as their users run them: the standalone one with its embedded Redis,
// and a recorder and a worker on a real Redis.
package browsertest

import (
	"flag"
	"sync/atomic"
	"testing"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestMain lets more tests run at once than there are processors: they wait for
// beats and windows, and compute little.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // a flag of every test binary
	redistest.Main(m)
}

// times are short, so that a viewer who vanishes is gone within a test.
var times = []string{
	"HEADCOUNT_WINDOW=6s",
	"HEADCOUNT_KEY_TTL=9s",
	"HEADCOUNT_COUNT_TTL=8s",
	"HEADCOUNT_RECORDER_BEAT_AFTER=1s",
	"HEADCOUNT_WORKER_INTERVAL=100ms",
	"HEADCOUNT_LOOKUP_CACHE=0s",
	"HEADCOUNT_LOG_FORMAT=json",
	"HEADCOUNT_WEB_DEMO=true",
}

// tests are of one feature each, and tell themselves apart by their videos.
var tests = []struct {
	name string
	run  func(*testing.T, *lab)
}{
	{"a play is counted", testPlay},
	{"a paused video does not beat", testPause},
	{"seeks and loops", testSeeksAndLoops},
	{"the end is a leave", testEnd},
	{"elements come, change and go", testElements},
	{"muted previews", testMutedPreview},
	{"timers that are throttled", testThrottled},
	{"closing the page", testClose},
	{"closing the page early", testCloseEarly},
	{"reloading the page", testReload},
	{"two tabs", testTabs},
	{"the page dies", testKill},
	{"the back-forward cache", testBackForwardCache},
	{"blocked storage", testBlockedStorage},
	{"blocked endpoint", testBlockedEndpoint},
	{"refusals", testRefusals},
	{"another origin", testCrossOrigin},
	{"a strict content security policy", testPolicy},
	{"module and script together", testModule},
	{"options", testOptions},
	{"tokens", testTokens},
	{"tokens that cannot be had", testTokenFailures},
	{"any player", testAnyPlayer},
	{"counts of a page", testCounts},
	{"counts and their states", testCountStates},
	{"kinds", testKinds},
	{"counts are refreshed while visible", testCountsHidden},
	{"counts for screen readers", testCountNames},
	{"examples", testExamples},
	{"a frame that goes elsewhere", testFrame},
	{"demo", testDemo},
	{"demo without the server", testDemoOffline},
	{"demo in Chinese", testDemoChinese},
	{"demo for screen readers", testDemoNames},
}

// TestBrowser runs all tests against both.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	for name, start := range map[string]func(*testing.T) string{"embedded": embedded, "services": services} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &lab{browser: browser, backend: start(t)}
			t.Run("all", func(t *testing.T) {
				for _, test := range tests {
					t.Run(test.name, func(t *testing.T) {
						t.Parallel()
						test.run(t, l)
					})
				}
			})
		})
	}
}

// embedded starts the standalone program, and returns its base URL.
func embedded(t *testing.T) string {
	binary := programtest.Build(t, "standalone")
	env := append([]string{
		"HEADCOUNT_RECORDER_LISTEN=127.0.0.1:0",
		"HEADCOUNT_RECORDER_ADMIN_LISTEN=127.0.0.1:0",
		"HEADCOUNT_WORKER_ADMIN_LISTEN=127.0.0.1:0",
	}, times...)
	return programtest.Exec(t, binary, env).URL(t, "public")
}

// services starts a recorder and a worker, and returns the former's base URL.
func services(t *testing.T) string {
	recorder, worker := programtest.Build(t, "recorder"), programtest.Build(t, "worker")
	env := programtest.Env(redistest.Shared(t).Addr(), redistest.Prefix(t), times...)
	programtest.Exec(t, worker, append(env, "HEADCOUNT_LOG_LEVEL=warn"))
	return programtest.Exec(t, recorder, env).URL(t, "public")
}

// lab is a browser and a server that counts.
type lab struct {
	browser *browser
	backend string
	videos  atomic.Int32
}
