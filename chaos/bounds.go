package chaos

import (
	"slices"
	"testing"
	"time"
)

// leeway is how many times what is promised the worst of several recoveries may take: the machine may be busy with
// something else for a while. Half of them must do without it.
const leeway = 10

// holdTo checks the times to recover against what is promised: the median, and the worst with leeway.
func (f *figures) holdTo(t testing.TB, promised time.Duration) {
	t.Helper()
	if len(f.recoveries) == 0 {
		t.Fatal("no time to recover was measured")
	}
	sorted := slices.Sorted(slices.Values(f.recoveries))
	if median := sorted[(len(sorted)-1)/2]; median > promised {
		t.Errorf("recovery took %s in the median, want %s; all of them: %s", median, promised, sorted)
	}
	if worst := sorted[len(sorted)-1]; worst > leeway*promised {
		t.Errorf("recovery took %s in the worst case, want %s, and at most %s on a busy machine", worst, promised, leeway*promised)
	}
}
