package console

import (
	"testing"

	"headcount/docs"
)

// Every warning leads to an entry of the documentation.
func TestRunbook(t *testing.T) {
	t.Parallel()
	for kind, entry := range runbook {
		if len(section(docs.Operations, entry)) < 100 {
			t.Errorf("docs/operations.md has no heading whose anchor is %s, for %s", entry, kind)
		}
	}
}
