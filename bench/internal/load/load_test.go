package load

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const report = "Running 1s test\n  10 requests in 1.00s, 1KB read\n\n"
	got, err := parse([]byte(report + `{"requests":11,"duration":2000000,"refused":1,"failed":0,"p50":1500,"p99":3000,"p999":4000}` + "\n"))
	want := Result{Requests: 10, Refused: 1, Rate: 5, P50: 1500 * time.Microsecond, P99: 3 * time.Millisecond, P999: 4 * time.Millisecond}
	if got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for name, line := range map[string]string{
		"refused": `{"requests":10,"duration":2000000,"refused":10,"failed":0}`,
		"failed":  `{"requests":10,"duration":2000000,"refused":0,"failed":1}`,
		"none":    `{"requests":0,"duration":2000000,"refused":0,"failed":0}`,
		"no JSON": `unable to connect`,
	} {
		if _, err := parse([]byte(report + line)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	if got, err := parseRate([]byte("\"test\",\"rps\",\"avg_latency_ms\"\n\"HSET bench\",\"280119.05\",\"1.2\"\n")); got != 280119.05 || err != nil {
		t.Errorf("got %v, %v, want 280119.05", got, err)
	}
	if _, err := parseRate([]byte("Could not connect\n")); err == nil {
		t.Error("no figures: no error")
	}
}
