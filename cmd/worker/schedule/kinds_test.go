package schedule

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"headcount/aggregator"
)

// What fails in one kind does not keep the next from being counted; what ends one pass ends all.
func TestPassOfSeveralKinds(t *testing.T) {
	t.Parallel()
	refused := errors.New("WRONGTYPE")
	lost := fmt.Errorf("%w: the lease was lost", aggregator.ErrCutShort)
	for _, tt := range []struct {
		name  string
		first func() error
		made  []string
		want  error
	}{
		{"all well", func() error { return nil }, []string{"first", "second"}, nil},
		{"the first is partial", func() error { return refused }, []string{"first", "second"}, refused},
		{"the first panics", func() error { panic("a fault") }, []string{"first", "second"}, errPanicked},
		{"the first is cut short", func() error { return lost }, []string{"first"}, aggregator.ErrCutShort},
	} {
		var made []string
		w := &worker{kinds: []counted{
			{zap.NewNop(), passFunc(func(context.Context) error { made = append(made, "first"); return tt.first() })},
			{zap.NewNop(), passFunc(func(context.Context) error { made = append(made, "second"); return nil })},
		}}
		err := w.pass(t.Context(), withoutLease)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: pass() = %v, want %v", tt.name, err, tt.want)
		}
		if diff := cmp.Diff(tt.made, made); diff != "" {
			t.Errorf("%s: passes (-want +got):\n%s", tt.name, diff)
		}
	}
}
