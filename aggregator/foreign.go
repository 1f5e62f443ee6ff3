package aggregator

import (
	"sync"

	"go.uber.org/zap"
)

// maxForeign bounds the memory of the keys already reported.
const maxForeign = 1000

// foreignLog reports each key of another type once, not in every pass.
type foreignLog struct {
	log *zap.Logger

	mu   sync.Mutex
	seen map[string]struct{}
}

func (f *foreignLog) report(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.seen[key]; known || len(f.seen) >= maxForeign {
		return
	}
	if f.seen == nil {
		f.seen = make(map[string]struct{})
	}
	f.seen[key] = struct{}{}
	f.log.Warn("a key under the prefix has another type than its name promises: left alone", zap.String("key", key))
	if len(f.seen) == maxForeign {
		f.log.Warn("no more such keys will be reported", zap.Int("reported", maxForeign))
	}
}
