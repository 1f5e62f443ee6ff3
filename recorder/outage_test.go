package recorder

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// answer is an error as Redis sends it.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestAnOutageIsToldOnceAndWhenItIsOver(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	o := outage{log: zap.New(core)}
	start := time.Unix(1_700_000_000, 0)
	for _, step := range []struct {
		after int // seconds
		err   error
		told  []string // reasons, or "over"
	}{
		{0, nil, nil},
		{2, fmt.Errorf("write: %w", answer("OOM command not allowed 'VIEWER'")), []string{"OOM"}},
		{3, errors.New("connection refused"), nil},
		{4, nil, nil},
		{8, nil, nil},
		{9, nil, []string{"over"}},
		{10, nil, nil},
		{11, errors.New("connection refused"), []string{"connection refused"}},
	} {
		o.note(step.err, start.Add(time.Duration(step.after)*time.Second))
		var told []string
		for _, entry := range logs.TakeAll() {
			if r, failing := entry.ContextMap()["reason"]; failing {
				told = append(told, r.(string))
			} else {
				told = append(told, "over")
			}
		}
		if !slices.Equal(told, step.told) {
			t.Errorf("after %d s and %v: told %q, want %q", step.after, step.err, told, step.told)
		}
	}
}

// One video whose key is of another type, in a write with others, neither hides
// an outage nor keeps it from being over.
func TestAForeignKeyIsNoOutage(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("write: %w", answer("READONLY You can't write against a read only replica."))
	gone := errors.New("connection refused")
	for _, tc := range []struct{ err, want error }{
		{nil, nil},
		{answer("WRONGTYPE Operation against a key"), nil},
		{fmt.Errorf("write: %w", answer("WRONGTYPE Operation against a key")), nil},
		{refused, refused},
		{gone, gone},
	} {
		if got := outageError(tc.err); !errors.Is(got, tc.want) {
			t.Errorf("outageError(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
}
