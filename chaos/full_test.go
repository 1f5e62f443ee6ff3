package chaos

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestRedisFull fills Redis with viewers who are gone, under load and again and again. Plays are refused, passes go on and
// make room, and nothing that was acknowledged is lost.
func TestRedisFull(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	site := s.newSite(server.Client(), server.Addr())
	recorder := site.addRecorder(t)
	var failed failures
	load := site.startLoad(t, failoverLoad, failed.note)
	var f figures
	for range s.times(1, 10) {
		eventually(t, "plays go on", func() bool { return load.acknowledgedSince(time.Now().Add(-50 * time.Millisecond)) })
		before, _ := failed.totals()
		site.fill(t, server)
		f.faults++
		eventually(t, "plays are refused", func() bool { n, _ := failed.totals(); return n > before })
		wantReady(t, recorder, "redis", "ok") // it answers: there are lookups, leaves, and passes that make room
		worker := site.startWorker(t)
		began := time.Now()
		eventually(t, "plays are recorded again", func() bool { return load.acknowledgedSince(began) })
		f.recovered(time.Since(began))
		worker.Wait(t, `"msg":"Redis is full and takes no lease: `)
		wantCounted(t, worker, "headcount_passes_without_lease_total", 0)
		site.awaitPass(t)
		wantCounted(t, worker, viewersEvicted, 0)
		wantNoPanic(t, worker)
		setMemory(t, server, "0")
		if err := worker.Stop(t); err != nil {
			t.Errorf("the worker ended with: %v", err)
		}
	}
	load.stop()
	site.startWorker(t)
	f.lost = site.wantSound(t)
	s.hold(&f, time.Second)
	wantNotRecorded(t, recorder, "OOM")
	for code, n := range load.totals().codes {
		if code != 200 && code != 204 && code != 503 {
			t.Errorf("%d answers %d, want 503 where Redis is full", n, code)
		}
	}
	f.report(t, site.ledger)
}

// fillers are the videos of those who are gone. Their hashes are no part of the load.
const fillers = "filler-"

// fill writes stale viewers, as much as the rest takes and two megabytes more, and lets Redis have less than that.
func (s *site) fill(t testing.TB, server *redistest.Server) {
	t.Helper()
	setMemory(t, server, "0")
	const each, most = 1000, 30
	for video := range most {
		fields := make([]any, 0, 2*each)
		for viewer := range each {
			fields = append(fields, "somebody who left long ago "+strconv.Itoa(viewer), time.Now().Add(-time.Hour).Unix())
		}
		key := s.keys.Online(fillers + strconv.Itoa(video))
		pipe := server.Client().Pipeline()
		pipe.HSet(t.Context(), key, fields...)
		pipe.Expire(t.Context(), key, keyTTL)
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const less = 1 << 20 // than is used: a connection that closes must not make room, and the passes must
	setMemory(t, server, strconv.FormatInt(usedMemory(t.Context(), server.Client())-less, 10))
}

func setMemory(t testing.TB, server *redistest.Server, limit string) {
	t.Helper()
	if err := server.Client().ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
		t.Fatal(err)
	}
}

// info is a number that a line of INFO gives, 0 if there is none.
func info(ctx context.Context, rdb *redis.Client, section, name string) int64 {
	_, rest, _ := strings.Cut(rdb.Info(ctx, section).Val(), "\n"+name+":")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func usedMemory(ctx context.Context, rdb *redis.Client) int64 {
	return info(ctx, rdb, "memory", "used_memory")
}

// TestEvictionPolicies lets Redis make room as each policy does. All drop viewers who are watching, which the programs say
// at their start; how many are lost is measured.
func TestEvictionPolicies(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for _, policy := range []string{
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
	} {
		server := redistest.Start(t, "--maxmemory", "1gb", "--maxmemory-policy", policy)
		site := s.newSite(server.Client(), server.Addr())
		worker, recorder := site.startWorker(t), site.addRecorder(t)
		for _, p := range []*programtest.Program{worker, recorder} {
			line := p.Wait(t, "Redis drops viewers who are watching when it is full: set its maxmemory-policy to noeviction")
			if line.Field("level") != "warn" || !strings.Contains(string(line), policy) {
				t.Errorf("%s, want a warning that names %s", line, policy)
			}
		}
		if s.full {
			lost := site.evict(t, server)
			t.Logf("%s: %d of %d acknowledged plays lost, %d keys evicted", policy, lost, site.ledger.acknowledged, info(t.Context(), server.Client(), "stats", "evicted_keys"))
		}
		for _, p := range []*programtest.Program{worker, recorder} {
			if err := p.Stop(t); err != nil {
				t.Errorf("a program ended with: %v", err)
			}
		}
	}
}

// evict has Redis evict under load, and returns how many acknowledged plays it lost.
func (s *site) evict(t testing.TB, server *redistest.Server) (lostPlays int) {
	t.Helper()
	load := s.startLoad(t, loadOptions{players: 20, videos: 200, pause: 10 * time.Millisecond}, nil)
	eventually(t, "plays go on", func() bool { a, _ := s.ledger.totals(); return a > 2000 })
	limit := usedMemory(t.Context(), server.Client())
	load.stop()
	setMemory(t, server, strconv.FormatInt(limit*95/100, 10))
	eventually(t, "Redis evicts", func() bool {
		err := server.Client().Set(t.Context(), "another program's", "x", time.Second).Err() // whatever it answers, it may make Redis evict
		if err != nil && !redis.HasErrorPrefix(err, "OOM") && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		return info(t.Context(), server.Client(), "stats", "evicted_keys") > 0
	})
	setMemory(t, server, "0")
	s.awaitPass(t)
	found, err := s.judge.look(t.Context(), s.redis, s.ledger)
	if err != nil {
		t.Fatal(err)
	}
	return count(found, lost)
}
