package redistest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const pollInterval = 10 * time.Millisecond

// poll calls ready until it returns nil, at most for limit. It ends early when stop, which may be nil, is closed.
// The error holds ready's last one.
func poll(ctx context.Context, limit time.Duration, stop <-chan struct{}, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-stop:
			return errors.Join(errExited, err)
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", limit, err)
		case <-ticker.C:
		}
	}
}
