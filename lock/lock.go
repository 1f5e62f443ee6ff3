package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bsm/redislock"
)

var (
	// ErrHeld is returned when another holder has the lease.
	ErrHeld = errors.New("lock: held by another")

	// ErrLost is the cause of a Term's context when the lease was lost: it expired, was deleted or taken by another,
	// or could not be refreshed in time.
	ErrLost = errors.New("lock: lost")

	// ErrUnreachable is returned when Redis did not answer, or answered with an error (LOADING, READONLY, NOAUTH,
	// CLUSTERDOWN): who holds the lease is unknown. The error wraps the reason too, which may be the
	// context.DeadlineExceeded of that one call.
	ErrUnreachable = errors.New("lock: no usable answer from Redis")

	// ErrFull is returned when nobody holds the lease, and nobody can get it: Redis has reached its maxmemory and
	// takes no new key. Work that gives memory back has to be done without the lease then.
	ErrFull = errors.New("lock: Redis is out of memory")
)

// MinTTL is the shortest TTL. Below it, the network and the scheduler would decide who holds the lease.
const MinTTL = 300 * time.Millisecond

// Options describe a lease. Only Key is required.
type Options struct {
	// Key is the full Redis key.
	Key string

	// TTL is how long the lease outlives its last refresh: a killed holder is replaced within it, or at the first try
	// after it. Zero: 15s. A value below MinTTL is raised to it.
	TTL time.Duration

	// Holder says who we are, for a person who reads the key's value. Empty: Holder().
	Holder string

	// Timeout is the deadline of one call to Redis. Zero, or more than a third of the TTL: a third of the TTL.
	// A client that does not honour deadlines (go-redis without ContextTimeoutEnabled) makes Acquire and Release
	// slow when Redis hangs; a Term ends in time even so.
	Timeout time.Duration

	// Retry is how long Wait pauses between two tries. Zero: half a second, or a third of the TTL if that is less.
	Retry time.Duration
}

func (o Options) withDefaults() Options {
	if o.TTL == 0 {
		o.TTL = 15 * time.Second
	}
	o.TTL = max(o.TTL, MinTTL)
	if o.Holder == "" {
		o.Holder = Holder()
	}
	if o.Timeout <= 0 || o.Timeout > o.TTL/3 {
		o.Timeout = o.TTL / 3
	}
	if o.Retry <= 0 {
		o.Retry = min(500*time.Millisecond, o.TTL/3)
	}
	return o
}

// Holder names this process: "host:pid".
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// Lease is a lease that this process may hold. It is safe for concurrent use.
type Lease struct {
	redis   redislock.RedisClient
	client  *redislock.Client
	options Options

	mu    sync.Mutex // held during a try: two with the same token would both succeed
	token string     // of the next Term, kept until a try is seen to succeed
}

// New returns a lease that nobody has tried to hold yet. It does not call Redis.
func New(client redislock.RedisClient, o Options) *Lease {
	return &Lease{redis: client, client: redislock.New(client), options: o.withDefaults(), token: rand.Text()}
}

// Acquire tries once to get the lease. The Term ends with ctx at the latest.
//
// It fails with ErrHeld, ErrFull or ErrUnreachable, or with ctx.Err() when ctx ended.
func (l *Lease) Acquire(ctx context.Context) (*Term, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, l.options.Timeout)
	defer cancel()

	sent := time.Now()
	lock, err := l.client.Obtain(call, l.options.Key, l.options.TTL, &redislock.Options{
		Token:    l.token,
		Metadata: " " + l.options.Holder,
	})
	switch {
	case err == nil:
		l.token = rand.Text()
		return newTerm(ctx, lock, l.options, sent), nil
	case errors.Is(err, redislock.ErrNotObtained):
		return nil, ErrHeld
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case full(err):
		return nil, l.whyFull(call)
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}

// Wait tries until it gets the lease. It fails with ErrFull, at once, and with ctx.Err() when ctx ended.
//
// A report that is not nil is called with the first failure, and again whenever the failures change from ErrHeld to
// ErrUnreachable or back, so a caller can log each change once.
func (l *Lease) Wait(ctx context.Context, report func(error)) (*Term, error) {
	var reported error
	for {
		term, err := l.Acquire(ctx)
		reason := sentinel(err)
		if reason == nil {
			return term, err
		}
		if report != nil && !errors.Is(err, reported) {
			report(err)
			reported = reason
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(l.options.Retry):
		}
	}
}

// sentinel returns the reason to try again that err wraps, nil when there is none.
func sentinel(err error) error {
	for _, reason := range []error{ErrHeld, ErrUnreachable} {
		if errors.Is(err, reason) {
			return reason
		}
	}
	return nil
}
