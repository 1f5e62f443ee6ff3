package main

import (
	"testing"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

func TestEvictingRedisIsWarnedOf(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu")
	p := programtest.Start(t, run, programtest.Env(s.Addr(), redistest.Prefix(t)))
	got := p.Wait(t, "Redis drops viewers who are watching when it is full: set its maxmemory-policy to noeviction")
	if got.Field("level") != "warn" {
		t.Errorf("%s, want a warning", got)
	}
	if policies, _ := got.Field("maxmemory_policy").([]any); len(policies) != 1 || policies[0] != "allkeys-lfu" {
		t.Errorf("%s, want the policy named", got)
	}
}
