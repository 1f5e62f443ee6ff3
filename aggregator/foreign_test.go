package aggregator

import (
	"strconv"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestForeignLogIsBounded(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	f := foreignLog{log: zap.New(core)}
	for i := range maxForeign + 100 {
		f.report(strconv.Itoa(i))
	}
	if len(f.seen) != maxForeign || logs.Len() != maxForeign+1 {
		t.Errorf("%d keys remembered and %d lines logged, want %d, and a line that there will be no more", len(f.seen), logs.Len(), maxForeign)
	}
}
