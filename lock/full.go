package lock

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed held.lua
var heldSource string

var heldScript = redis.NewScript(heldSource)

// full reports whether Redis refused a write for want of memory. Before version 7, what a script is refused does not
// stand at the answer's beginning.
func full(err error) bool {
	return redis.IsOOMError(err) || strings.Contains(err.Error(), "-OOM ")
}

// whyFull tells a lease that nobody can get from one that somebody has: a full Redis refuses both alike, but it goes on
// refreshing what it has.
func (l *Lease) whyFull(ctx context.Context) error {
	held, err := heldScript.Run(ctx, l.redis, []string{l.options.Key}).Bool()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case held:
		return ErrHeld
	}
	return ErrFull
}
