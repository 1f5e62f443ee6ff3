package console

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

// redisState is how Redis is, as this program sees it.
type redisState struct {
	Masters []master `json:"masters"` // one, but on a cluster
	Error   string   `json:"error,omitempty"`
}

// master is a server that owns keys.
type master struct {
	Addr       string   `json:"addr"`
	Error      string   `json:"error,omitempty"` // it does not answer
	LatencyMS  *float64 `json:"latency_ms"`      // of a PING
	UsedBytes  *int64   `json:"used_bytes"`
	MaxBytes   *int64   `json:"max_bytes"` // 0: no limit
	DropPolicy string   `json:"policy"`    // maxmemory_policy
}

func (c *Console) redis(ctx context.Context) redisState {
	nodes, err := redisclient.Masters(ctx, c.rdb)
	s := redisState{Masters: make([]master, len(nodes))}
	if err != nil {
		s.Error = err.Error()
	}
	var running sync.WaitGroup
	for i, node := range nodes {
		running.Go(func() { s.Masters[i] = look(ctx, node) })
	}
	running.Wait()
	return s
}

// look asks a server for its memory first, so that the connection is there
// already when the PING is timed.
func look(ctx context.Context, node redis.UniversalClient) master {
	m := master{Addr: address(node)}
	if info, err := node.Info(ctx, "memory").Result(); err == nil {
		m.UsedBytes, m.MaxBytes = infoNumber(info, "used_memory"), infoNumber(info, "maxmemory")
		m.DropPolicy = redisclient.InfoField(info, "maxmemory_policy")
	}
	began := time.Now()
	if err := node.Ping(ctx).Err(); err != nil {
		m.Error = err.Error()
		return m
	}
	latency := float64(time.Since(began).Microseconds()) / 1000
	m.LatencyMS = &latency
	return m
}

// address is "" behind Sentinel, where it is whichever server is the master.
func address(node redis.UniversalClient) string {
	addr := redisclient.Address(node)
	if !strings.Contains(addr, ":") {
		return ""
	}
	return addr
}

func infoNumber(info, field string) *int64 {
	n, err := strconv.ParseInt(redisclient.InfoField(info, field), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// silent reports whether a server does not answer.
func (r *redisState) silent() bool {
	return r.Error != "" || slices.ContainsFunc(r.Masters, func(m master) bool { return m.Error != "" })
}

// fill is how full the server is, 1 at its limit; 0 where there is none.
func (m *master) fill() float64 {
	if m.UsedBytes == nil || m.MaxBytes == nil || *m.MaxBytes == 0 {
		return 0
	}
	return float64(*m.UsedBytes) / float64(*m.MaxBytes)
}

// drops reports whether the server makes room by deleting keys: all of ours have
// a TTL, so under any policy but one it may be those of viewers who are watching.
func (m *master) drops() bool {
	return m.MaxBytes != nil && *m.MaxBytes > 0 && m.DropPolicy != "" && m.DropPolicy != "noeviction"
}
