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
	pipe := rdb.Pipeline()
	QueueScripts(ctx, pipe, calls)
	exec(ctx, pipe)
	RepeatScripts(ctx, rdb, calls)
}

// QueueScripts adds the calls to a pipeline of the caller's. RepeatScripts must
// be called once it was sent.
func QueueScripts(ctx context.Context, pipe redis.Pipeliner, calls []*ScriptCall) {
	for _, c := range calls {
		c.Reply = c.Script.EvalSha(ctx, pipe, []string{c.Key}, c.Args...)
	}
}

// RepeatScripts is the second half of RunScripts.
func RepeatScripts(ctx context.Context, rdb redis.UniversalClient, calls []*ScriptCall) {
	pipe := rdb.Pipeline()
	behind := make(map[string]bool) // keys with a call that has to be repeated
	for _, c := range calls {
		if redis.HasErrorPrefix(c.Reply.Err(), "NOSCRIPT") {
			behind[c.Key] = true
		}
		if behind[c.Key] {
			c.Reply = c.Script.Eval(ctx, pipe, []string{c.Key}, c.Args...)
		}
	}
	exec(ctx, pipe)
}

func exec(ctx context.Context, pipe redis.Pipeliner) {
	if pipe.Len() > 0 {
		// The pipeline's own error is the first of its commands'; each is looked at.
		_, _ = pipe.Exec(ctx)
	}
}
