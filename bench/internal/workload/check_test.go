package workload

import (
	"testing"

	"headcount/bench/internal/contender"
	"headcount/bench/internal/dataset"
)

func TestWrongCountIsAnError(t *testing.T) {
	t.Parallel()
	s := &stage{set: dataset.Set{Videos: 10, Viewers: 10}}
	reader := contender.Kind{Name: "reader", All: true}
	if err := s.check(t.Context(), reader, s.set.Total()); err != nil {
		t.Errorf("the right number: %v", err)
	}
	if err := s.check(t.Context(), reader, s.set.Total()-1); err == nil {
		t.Error("a wrong number: no error")
	}
}

func TestParsePeak(t *testing.T) {
	t.Parallel()
	if got, err := parsePeak("Name:\tbench\nVmHWM:\t   18432 kB\nVmRSS:\t 100 kB\n"); got != 18432<<10 || err != nil {
		t.Errorf("got %d, %v, want %d", got, err, 18432<<10)
	}
	if _, err := parsePeak("Name:\tbench\n"); err == nil {
		t.Error("no VmHWM: no error")
	}
}
