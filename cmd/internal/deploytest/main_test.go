// Package deploytest holds the alerts and the dashboard in deploy against the
// programs whose metrics they read.
package deploytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func deployed(name string) string { return filepath.Join("..", "..", "..", "deploy", name) }

// promtool runs Prometheus's checker in a folder, and fails the test unless it is content.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatalf("these tests need promtool (apt-get install prometheus): %v", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// exported are the series, as /metrics shows them, of a recorder and a worker that have something to show.
func exported(t *testing.T) []string {
	t.Helper()
	env := programtest.Env(redistest.Shared(t).Addr(), redistest.Prefix(t))
	recorder := programtest.Exec(t, programtest.Build(t, "recorder"), env)
	worker := programtest.Exec(t, programtest.Build(t, "worker"), env)
	video := recorder.URL(t, "public") + "/v1/videos/10001/"
	programtest.Post(t, video+"play", `{"viewer_id":"u1"}`).OK(t)
	programtest.Post(t, video+"leave", `{"viewer_id":"u1"}`)
	programtest.Post(t, recorder.URL(t, "public")+"/v1/plays", `{"plays":[{"video_id":"1","viewer_id":"u1"}]}`).OK(t)
	programtest.Get(t, video+"viewers").OK(t)
	worker.Wait(t, `"msg":"pass complete"`)
	var series []string
	for _, p := range []*programtest.Program{recorder, worker} {
		for line := range strings.Lines(programtest.Get(t, p.URL(t, "admin")+"/metrics").OK(t)) {
			if !strings.HasPrefix(line, "#") {
				series = append(series, line)
			}
		}
	}
	return series
}

var (
	selector = regexp.MustCompile(`\b((?:headcount|go|process)_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(=~|=|!=|!~)\s*"((?:[^"\\]|\\.)*)"`)
)

// byClass are labels whose values are patterns of what may come, not of what is there from the start.
var byClass = []string{"code"}

// checkExported fails the test unless each series that the expression reads is exported, with each label value that it names.
func checkExported(t *testing.T, series []string, expr string) {
	t.Helper()
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s: reads none of our metrics", expr)
	}
	for _, s := range found {
		name, labels := s[1], s[2]
		ofName := slices.DeleteFunc(slices.Clone(series), func(line string) bool { return !isOf(line, name) })
		if len(ofName) == 0 {
			t.Errorf("%s: no program exports %s", expr, name)
		}
		for _, m := range matcher.FindAllStringSubmatch(labels, -1) {
			if label, value := m[1], m[3]; !slices.Contains(byClass, label) {
				checkLabel(t, ofName, expr, label, value)
			}
		}
	}
}

func isOf(line, name string) bool {
	rest, found := strings.CutPrefix(line, name)
	return found && (strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, " "))
}

// checkLabel takes a value as Prometheus does for =~: as a pattern of the whole label. Each of its alternatives must be
// there.
func checkLabel(t *testing.T, series []string, expr, label, value string) {
	t.Helper()
	for alternative := range strings.SplitSeq(value, "|") {
		pattern, err := regexp.Compile(`[{,]` + label + `="(?:` + alternative + `)"`)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if !slices.ContainsFunc(series, pattern.MatchString) {
			t.Errorf("%s: nothing is exported with %s=%q", expr, label, alternative)
		}
	}
}

func TestEverythingReadIsExported(t *testing.T) {
	t.Parallel()
	series := exported(t)
	for _, r := range rules(t) {
		checkExported(t, series, r.Expr)
	}
	for _, expr := range dashboard(t).expressions() {
		checkExported(t, series, expr)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
