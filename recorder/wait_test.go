package recorder

import (
	"context"
	"errors"
	"testing"
)

// Whoever waits for many requests in turn gets the answers that came before
// giving up, not an error for some of them by chance.
func TestAnAnswerOutlivesItsCallersDeadline(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // as a select chooses at random
		q := &request{done: make(chan struct{})}
		if _, err := q.wait(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("before the answer: %v, want %v", err, context.Canceled)
		}
		q.finish(1_700_000_000, refused)
		if at, err := q.wait(ctx); at != 1_700_000_000 || !errors.Is(err, refused) {
			t.Fatalf("after the answer: %d, %v, want 1700000000, %v", at, err, refused)
		}
	}
}
