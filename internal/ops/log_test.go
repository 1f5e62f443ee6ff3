package ops_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headcount/internal/ops"
)

// full is a disk with room for one line.
type full struct{ lines int }

func (f *full) Write(p []byte) (int, error) {
	if f.lines++; f.lines > 1 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestCountErrors(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	log, _, err := ops.NewLogger(ops.CountErrors(&full{}, reg), "info", ops.JSON)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		log.Info("a line")
	}
	want := `
		# HELP headcount_log_write_errors_total Lines of the log that could not be written.
		# TYPE headcount_log_write_errors_total counter
		headcount_log_write_errors_total 2
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
