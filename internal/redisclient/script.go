package redisclient

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// ScriptCall is one call of a script on one key, or a command that goes along
// with such. RunScripts fills in Reply.
type ScriptCall struct {
	Script *redis.Script
	Key    string
	Args   []any // without a Script: the command with all its arguments, the second of which is Key
	Reply  *redis.Cmd
	Before *redis.Cmd // the first answer, where RepeatScripts has sent it again
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
		c.queue(ctx, pipe, (*redis.Script).EvalSha)
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
			c.Before = c.Reply
			c.queue(ctx, pipe, (*redis.Script).Eval)
		}
	}
	exec(ctx, pipe)
}

type evaluate func(s *redis.Script, ctx context.Context, rdb redis.Scripter, keys []string, args ...any) *redis.Cmd

func (c *ScriptCall) queue(ctx context.Context, pipe redis.Pipeliner, eval evaluate) {
	if c.Script == nil {
		c.Reply = pipe.Do(ctx, c.Args...)
	} else {
		c.Reply = eval(c.Script, ctx, pipe, []string{c.Key}, c.Args...)
	}
}

func exec(ctx context.Context, pipe redis.Pipeliner) {
	if pipe.Len() > 0 {
		// The pipeline's own error is the first of its commands'; each is looked at.
		_, _ = pipe.Exec(ctx)
	}
}
