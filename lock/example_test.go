package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"headcount/lock"
)

func Example() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()

	ctx := context.Background()
	options := lock.Options{Key: "video:worker:lease", TTL: 15 * time.Second}
	active, standby := lock.New(client, options), lock.New(client, options)

	term, err := active.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("active holds the lease:", term.Held())

	_, err = standby.Acquire(ctx)
	fmt.Println("standby finds it held:", errors.Is(err, lock.ErrHeld))

	if err := term.Release(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("released:", term.Context().Err())

	next, err := standby.Wait(ctx, func(err error) { fmt.Println("waiting:", err) })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = next.Release() }()
	fmt.Println("standby holds the lease:", next.Held())

	// Output:
	// active holds the lease: true
	// standby finds it held: true
	// released: context canceled
	// standby holds the lease: true
}
