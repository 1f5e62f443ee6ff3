package lookup_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"headcount/aggregator"
	"headcount/internal/keys"
	"headcount/lookup"
)

func Example() {
	server, err := miniredis.Run() // any Redis will do
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{
		Addr:                  server.Addr(),
		Protocol:              2, // miniredis answers HRANDFIELD in version 3 as no Redis does
		ContextTimeoutEnabled: true,
	})
	defer func() { _ = rdb.Close() }()

	k := keys.New("video")
	lookups, err := lookup.New(rdb, lookup.Options{
		Keys:     k,
		CountTTL: 12 * time.Minute,
		Cache:    time.Second,
		Counter: aggregator.New(rdb, aggregator.Options{
			Keys:     k,
			Window:   10 * time.Minute,
			KeyTTL:   15 * time.Minute,
			CountTTL: 12 * time.Minute,
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lookups.Close()

	ctx := context.Background()
	rdb.Set(ctx, "video:online:count:published", 23, 12*time.Minute)
	rdb.HSet(ctx, "video:online:uncounted", "u1", time.Now().Unix(), "u2", time.Now().Unix())
	for _, video := range []string{"published", "uncounted", "unknown"} {
		viewers, _, err := lookups.Viewers(ctx, video)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(video, viewers)
	}
	// Output:
	// published 23
	// uncounted 2
	// unknown 0
}
