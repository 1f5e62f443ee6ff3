package programtest

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client keeps no connection: an idle one would outlive the test.
var client = &http.Client{Timeout: Limit, Transport: &http.Transport{DisableKeepAlives: true}}

// Answer is an answer over HTTP.
type Answer struct {
	Code int
	Body string
}

// Get asks for a URL.
func Get(t testing.TB, url string) Answer {
	t.Helper()
	return do(t, http.MethodGet, url, "")
}

// Post posts JSON.
func Post(t testing.TB, url, body string) Answer {
	t.Helper()
	return do(t, http.MethodPost, url, body)
}

// OK is Get and Post's answer's body, which must come with 200.
func (a Answer) OK(t testing.TB) string {
	t.Helper()
	if a.Code != http.StatusOK {
		t.Fatalf("answered %d %s, want 200", a.Code, a.Body)
	}
	return a.Body
}

func do(t testing.TB, method, url, body string) Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{res.StatusCode, strings.TrimSpace(string(got))}
}

// Metric is the value of a series on the admin listener, such as
// `headcount_plays_total{outcome="recorded"}`; 0 if it is not there.
func Metric(t testing.TB, admin, series string) float64 {
	t.Helper()
	for line := range strings.Lines(Get(t, admin+"/metrics").OK(t)) {
		text, found := strings.CutPrefix(line, series+" ")
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	return 0
}

// MetricNames are the names of our own metrics on the admin listener, sorted.
func MetricNames(t testing.TB, admin string) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(Get(t, admin+"/metrics").OK(t)) {
		if rest, found := strings.CutPrefix(line, "# TYPE headcount_"); found {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, "headcount_"+name)
		}
	}
	return names
}

// Eventually waits until done, and asks it again and again. what names it.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(Limit)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %s: %s", Limit, what)
		}
	}
}
