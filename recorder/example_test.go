package recorder_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/recorder"
)

func Example() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = rdb.Close() }()

	r := recorder.New(rdb, recorder.Options{
		Keys:     keys.New("video"),
		KeyTTL:   15 * time.Minute,
		CountTTL: 12 * time.Minute,
	})

	ctx := context.Background()
	recordedAt, err := r.Play(ctx, "10001", "u1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rdb.HKeys(ctx, "video:online:10001").Val(), rdb.Get(ctx, "video:online:count:10001").Val())

	if err := r.Leave(ctx, "10001", "u1", recordedAt); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rdb.HKeys(ctx, "video:online:10001").Val(), rdb.Get(ctx, "video:online:count:10001").Val())
	// Output:
	// [u1] 1
	// [] 0
}
