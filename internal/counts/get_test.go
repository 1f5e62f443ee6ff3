package counts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/internal/keys"
	"headcount/internal/redistest"
)

// get reads the counts of these videos, and how many commands that took.
func get(t *testing.T, rdb redis.UniversalClient, k keys.Keys, videoIDs []string) (values []string, commands int) {
	t.Helper()
	pipe := rdb.Pipeline()
	published := Get(t.Context(), rdb, pipe, k, videoIDs)
	commands = pipe.Len()
	_, _ = pipe.Exec(t.Context()) // each command has its own error
	for i := range videoIDs {
		value, err := published(i)
		if err != nil {
			t.Errorf("value %d: %v", i, err)
		}
		values = append(values, value)
	}
	return values, commands
}

func TestGet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rdb      redis.UniversalClient
		commands int
	}{
		"single":  {redistest.Shared(t).Client(), 1},
		"cluster": {redistest.StartCluster(t, 3, 0).Client(), 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			for video, viewers := range map[string]string{"a": "1", "b": "22", "junk": "many"} {
				if err := tt.rdb.Set(t.Context(), prefix+":online:count:"+video, viewers, 0).Err(); err != nil {
					t.Fatalf("SET: %v", err)
				}
			}
			if err := tt.rdb.RPush(t.Context(), prefix+":online:count:list", "7").Err(); err != nil {
				t.Fatalf("RPUSH: %v", err)
			}
			got, commands := get(t, tt.rdb, keys.New(prefix), []string{"b", "none", "list", "junk", "a"})
			if diff := cmp.Diff([]string{"22", "", "", "many", "1"}, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if commands != tt.commands {
				t.Errorf("commands = %d, want %d", commands, tt.commands)
			}
		})
	}
}

func TestGetWithoutRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t)
	pipe := s.Client().Pipeline()
	published := Get(t.Context(), s.Client(), pipe, keys.New("video"), []string{"a", "b"})
	_, _ = pipe.Exec(t.Context()) // each command has its own error
	for i := range 2 {
		if value, err := published(i); value != "" || err == nil {
			t.Errorf("value %d = %q, %v, want an error: unknown is not none", i, value, err)
		}
	}
}

// One master of a cluster is gone: its videos fail, the others do not.
func TestGetWithoutOneMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	k := keys.New(redistest.Prefix(t))
	var videos []string
	for i := range 30 {
		video := fmt.Sprint(i)
		videos = append(videos, video)
		if err := c.Client().Set(t.Context(), k.Count(video), i, 0).Err(); err != nil {
			t.Fatalf("SET: %v", err)
		}
	}
	lost := c.Masters()[0]
	onLost := make(map[string]bool)
	for _, video := range videos {
		slot, err := c.Client().ClusterKeySlot(t.Context(), k.Count(video)).Result()
		if err != nil {
			t.Fatalf("CLUSTER KEYSLOT: %v", err)
		}
		onLost[video] = slot < 16384/3
	}
	lost.Kill(t)
	pipe := c.Client().Pipeline()
	published := Get(t.Context(), c.Client(), pipe, k, videos)
	_, _ = pipe.Exec(t.Context()) // each command has its own error
	failed := 0
	for i, video := range videos {
		value, err := published(i)
		if err != nil {
			failed++
		} else if value != video {
			t.Errorf("value of %s = %q, want %q", video, value, video)
		}
		if (err != nil) != onLost[video] {
			t.Errorf("value of %s: %v, want an error %t", video, err, onLost[video])
		}
	}
	if failed == 0 {
		t.Errorf("no video was on the lost master, so the test has shown nothing")
	}
}
