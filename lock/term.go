package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bsm/redislock"
)

// Term is one unbroken holding of the lease. It is refreshed until it is released or lost, or until the context it was
// acquired with ends. Release it in every case. It is safe for concurrent use.
type Term struct {
	lock    *redislock.Lock
	options Options
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	until   time.Time   // trusted before this moment
	expiry  *time.Timer // runs expire at until
	failure error       // of the last refresh, nil when it succeeded
}

// newTerm starts to keep a lock that was obtained by a call sent at the given moment.
func newTerm(ctx context.Context, lock *redislock.Lock, o Options, sent time.Time) *Term {
	t := &Term{lock: lock, options: o, until: sent.Add(o.trust())}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.expiry = time.AfterFunc(time.Until(t.until), t.expire)
	go t.keep(sent)
	return t
}

// trust is how long a lease is trusted after the call that obtained or refreshed it was sent.
func (o Options) trust() time.Duration { return o.TTL - o.TTL/10 }

// Context ends when the Term does. Its cause (context.Cause) wraps ErrLost when the lease was lost, is
// context.Canceled when it was released, and that of the parent context when that ended first.
func (t *Term) Context() context.Context { return t.ctx }

// Held reports whether the lease may still be trusted at this moment. It asks the clock, not Redis, and needs no timer
// to have fired: it is right at once in a process that was stopped past the end of its Term.
func (t *Term) Held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ctx.Err() == nil && time.Now().Before(t.until)
}

// Release ends the Term and deletes the key if it is still ours, even when the Term's context has ended. Afterwards the
// lease is not ours, so a lease that was lost before is no error: the cause of the context has told.
//
// It fails with ErrUnreachable when Redis did not answer within Options.Timeout; the key then expires within
// the TTL. Calling it again is harmless and tries again.
func (t *Term) Release() error {
	t.cancel(nil)
	call, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.options.Timeout)
	defer cancel()
	err := t.lock.Release(call)
	if err != nil && !errors.Is(err, redislock.ErrLockNotHeld) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// keep refreshes the lease until the Term ends.
func (t *Term) keep(sent time.Time) {
	defer t.expiry.Stop()
	next := time.NewTimer(time.Until(sent.Add(t.options.TTL / 3)))
	defer next.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-next.C:
			next.Reset(t.refresh())
		}
	}
}

// refresh asks Redis once for another TTL and returns how long to wait before asking again.
func (t *Term) refresh() time.Duration {
	call, cancel := context.WithTimeout(t.ctx, t.options.Timeout)
	defer cancel()

	sent := time.Now()
	err := t.lock.Refresh(call, t.options.TTL, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		t.cancel(fmt.Errorf("%w: the key expired, was deleted or taken by another", ErrLost))
	}
	t.refreshed(sent, err)
	if err != nil {
		return t.options.TTL / 10
	}
	return time.Until(sent.Add(t.options.TTL / 3))
}

// refreshed takes note of a refresh. A success extends the trust, unless it came after the trust had run out.
func (t *Term) refreshed(sent time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = err
	if err == nil && time.Now().Before(t.until) {
		t.until = sent.Add(t.options.trust())
		t.expiry.Reset(time.Until(t.until))
	}
}

// expire ends the Term when its trust has run out.
func (t *Term) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Now().Before(t.until) {
		return // a refresh came in while this call was on its way
	}
	lost := fmt.Errorf("%w: not refreshed within %s", ErrLost, t.options.trust())
	if t.failure != nil {
		lost = fmt.Errorf("%w: %w", lost, t.failure)
	}
	t.cancel(lost)
}
