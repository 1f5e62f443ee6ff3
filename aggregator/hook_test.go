package aggregator

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// hook looks at, or interferes with, what the Aggregator sends: each command or
// pipeline before it goes out, and after it has been answered.
type hook struct {
	before func(ctx context.Context, cmds []redis.Cmder)
	after  func(ctx context.Context, cmds []redis.Cmder)
	atOnce bool // they may be called at once, as the masters of a cluster are swept side by side
}

// hooks are all of an env. Of a cluster they see what is routed by it as a
// whole, and what goes to one node directly from there.
type hooks struct {
	mu  sync.Mutex
	all []hook

	calling sync.Mutex
}

func (h *hooks) installOn(rdb redis.UniversalClient) {
	rdb.AddHook(installed{hooks: h})
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(installed{h, node.Options().Addr}) })
	}
}

type nodeKey struct{}

// nodeOf is the address of the node that a hook of a cluster is called for.
func nodeOf(ctx context.Context) string {
	addr, _ := ctx.Value(nodeKey{}).(string)
	return addr
}

func (h *hooks) intercept(one hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, one)
}

// fail turns every answer to that command into an error. Unless key is "", only
// where it is on that key.
func (h *hooks) fail(command, key string, err error) {
	h.intercept(hook{after: func(_ context.Context, cmds []redis.Cmder) {
		for _, cmd := range cmds {
			if names(cmd, command, key) {
				cmd.SetErr(err)
			}
		}
	}})
}

func (h *hooks) call(ctx context.Context, pick func(hook) func(context.Context, []redis.Cmder), cmds []redis.Cmder) {
	h.mu.Lock()
	all := slices.Clone(h.all)
	h.mu.Unlock()
	for _, one := range all {
		f := pick(one)
		switch {
		case f == nil:
		case one.atOnce:
			f(ctx, cmds)
		default:
			h.callAlone(ctx, f, cmds)
		}
	}
}

func (h *hooks) callAlone(ctx context.Context, f func(context.Context, []redis.Cmder), cmds []redis.Cmder) {
	h.calling.Lock()
	defer h.calling.Unlock() // it may panic
	f(ctx, cmds)
}

func before(h hook) func(context.Context, []redis.Cmder) { return h.before }
func after(h hook) func(context.Context, []redis.Cmder)  { return h.after }

// installed is go-redis's face of hooks.
type installed struct {
	*hooks
	node string // of a cluster; "": the client itself
}

// wanted is of a node only what was sent to it by name, not by its keys.
func (i installed) wanted(cmds []redis.Cmder) bool {
	return i.node == "" || slices.Contains([]string{"scan", "hscan", "asking", "time", "info"}, cmds[0].Name())
}

func (i installed) call(ctx context.Context, pick func(hook) func(context.Context, []redis.Cmder), cmds []redis.Cmder) {
	if i.wanted(cmds) {
		i.hooks.call(context.WithValue(ctx, nodeKey{}, i.node), pick, cmds)
	}
}

func (i installed) DialHook(next redis.DialHook) redis.DialHook { return next }

func (i installed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		cmds := []redis.Cmder{cmd}
		i.call(ctx, before, cmds)
		err := next(ctx, cmd)
		i.call(ctx, after, cmds)
		if cmd.Err() != nil {
			return cmd.Err()
		}
		return err
	}
}

func (i installed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		i.call(ctx, before, cmds)
		err := next(ctx, cmds)
		i.call(ctx, after, cmds)
		return err
	}
}

// names reports whether cmd is of that name and, unless key is "", on that key.
func names(cmd redis.Cmder, name, key string) bool {
	if cmd.Name() != name {
		return false
	}
	for _, arg := range cmd.Args() {
		if s, ok := arg.(string); ok && s == key {
			return true
		}
	}
	return key == ""
}

// anyNames reports whether any of cmds is of that name and on that key.
func anyNames(cmds []redis.Cmder, name, key string) bool {
	return slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return names(cmd, name, key) })
}
