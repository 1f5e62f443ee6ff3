package redisclient

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// ScriptCall is one call of a script on one key. RunScripts fills in Reply.
type ScriptCall struct {
	Script *redis.Script
	Key    string
	Args   []any
	Reply  *redis.Cmd
}

// RunScripts sends all calls in one pipeline, in their order, and leaves each
// call's answer or error in its Reply. Calls that found their script missing
// (after a restart, a failover or SCRIPT FLUSH) are sent once more with the
// script's text, so that no caller ever sees NOSCRIPT. With them go the later
// calls on their keys, which would have overtaken them otherwise: a script must
// bear being run twice.
func RunScripts(ctx context.Context, rdb redis.UniversalClient, calls []*ScriptCall) {
	send(ctx, rdb, calls, (*redis.Script).EvalSha)

	var again []*ScriptCall
	behind := make(map[string]bool) // keys with a call that has to be repeated
	for _, c := range calls {
		if redis.HasErrorPrefix(c.Reply.Err(), "NOSCRIPT") {
			behind[c.Key] = true
		}
		if behind[c.Key] {
			again = append(again, c)
		}
	}
	send(ctx, rdb, again, (*redis.Script).Eval)
}

type evaluate func(s *redis.Script, ctx context.Context, rdb redis.Scripter, keys []string, args ...any) *redis.Cmd

func send(ctx context.Context, rdb redis.UniversalClient, calls []*ScriptCall, eval evaluate) {
	if len(calls) == 0 {
		return
	}
	pipe := rdb.Pipeline()
	for _, c := range calls {
		c.Reply = eval(c.Script, ctx, pipe, []string{c.Key}, c.Args...)
	}
	// The pipeline's own error is the first of its commands'; each is looked at.
	_, _ = pipe.Exec(ctx)
}
