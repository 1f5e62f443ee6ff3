package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// brokenFiles are what may stand in a file by mistake.
var brokenFiles = []string{
	"window: [\n",
	"window: 10\n",
	"window: 20m\n", // more than the running key_ttl allows
	"windows: 10m\n",
	"window: 1m\nrecorder:\n  beat_after: 1m\n",
	"\xff\n",
}

// TestReloads replaces the file of running programs again and again, by good ones and broken ones, while players play.
// The programs are built with the race detector; the last good file is in force.
func TestReloads(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.binaries = binaries{built.path(t, "recorder", "-race"), built.path(t, "worker", "-race")}
	recorder, worker := site.addRecorder(t), site.startWorker(t)
	load := site.startLoad(t, loadOptions{players: 5, videos: 20, pause: 50 * time.Millisecond}, nil)
	probe := newClient(site.ledger)
	defer probe.close()

	programs := []*programtest.Program{recorder, worker}
	var admins []string
	for _, p := range programs {
		admins = append(admins, p.URL(t, "admin")) // or it could still begin with the first of the files
	}
	f := figures{faults: s.times(100, 1000)}
	outcomes := map[string]int{"applied": 0, "refused": 0}
	beatAfter := 150
	for n := range f.faults {
		outcome, text := "refused", brokenFiles[s.rand.IntN(len(brokenFiles))]
		if s.rand.IntN(2) == 0 {
			outcome = "applied"
			beatAfter = 1 + (beatAfter+s.rand.IntN(98))%99 // never the same twice
			text = fmt.Sprintf("window: %ds\nrecorder:\n  beat_after: %ds\n", 500+s.rand.IntN(100), beatAfter)
		}
		outcomes[outcome]++
		site.file.Replace(t, fmt.Sprintf("%s# %d\n", text, n))
		replaced := time.Now()
		for _, p := range programs {
			line := p.Wait(t, reloadMessages[outcome])
			if reason, _ := line.Field("error").(string); outcome == "refused" && reason == "" {
				t.Errorf("a file was refused without a reason: %s", line)
			}
		}
		f.recovered(time.Since(replaced))
		if n%10 == 0 { // a scrape now and then
			site.wantReload(t, programs, outcome)
		}
		if got := site.beatAfter(t, probe); got != beatAfter {
			t.Fatalf("after %d files, the last one %s, beat_after = %d, want %d", n+1, outcome, got, beatAfter)
		}
	}
	load.stop()
	f.holdTo(t, time.Second)
	for _, admin := range admins {
		wantReloads(t, admin, outcomes)
	}
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	for _, p := range programs {
		if err := p.Stop(t); err != nil || strings.Contains(p.Output(), "DATA RACE") {
			t.Errorf("the program ended with %v; its output:\n%s", err, p.Output())
		}
	}
	f.report(t, site.ledger)
}

// reloadMessages are what a program logs of a file, by the outcome in its metric.
var reloadMessages = map[string]string{
	"applied": `"msg":"configuration reloaded"`,
	"refused": `"msg":"configuration file refused, the old configuration stays"`,
}

// wantReload checks what an operator sees of the last file: programs with a broken one are ready all the same.
func (s *site) wantReload(t *testing.T, programs []*programtest.Program, outcome string) {
	t.Helper()
	last := 0.0
	if outcome == "applied" {
		last = 1
	}
	for _, p := range programs {
		wantMetric(t, p, "headcount_config_last_reload_successful", last)
		wantReady(t, p, "redis", "ok")
	}
}

// wantReloads checks how many files a program says that it has taken in, with each outcome.
func wantReloads(t *testing.T, admin string, outcomes map[string]int) {
	t.Helper()
	for outcome, want := range outcomes {
		series := `headcount_config_reloads_total{outcome="` + outcome + `"}`
		if got := programtest.Metric(t, admin, series); got != float64(want) {
			t.Errorf("%s = %v, want %d", series, got, want)
		}
	}
}

// beatAfter is what the recorder tells players.
func (s *site) beatAfter(t *testing.T, c *client) int {
	t.Helper()
	_, a := c.play(t.Context(), s.balancer.pick(0), viewing{"10001", "probe"})
	var answer struct {
		BeatAfter int `json:"beat_after"`
	}
	if err := json.Unmarshal(a.body, &answer); err != nil {
		t.Fatalf("a play while files change: %s", a)
	}
	return answer.BeatAfter
}
