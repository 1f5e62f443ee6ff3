package console

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// figure is something that is known, or why it is not.
type figure[T any] struct {
	Value  *T   `json:"value,omitempty"`
	Off    bool `json:"off,omitempty"`    // by configuration
	Failed bool `json:"failed,omitempty"` // could not be had
}

// ask returns a figure of a statistic; none is one that is off.
func ask[S comparable, T any](statistic S, load func(S) (T, error)) figure[T] {
	var none S
	if statistic == none {
		return figure[T]{Off: true}
	}
	value, err := load(statistic)
	if err != nil {
		return figure[T]{Failed: true}
	}
	return figure[T]{Value: &value}
}

// millis is a time as the page has it, Unix milliseconds; nil for none.
func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// sideBySide calls all functions at once and waits for them. A panic in one of
// them is the caller's, and says where it was.
func sideBySide(functions ...func()) {
	var running sync.WaitGroup
	var mu sync.Mutex
	var fault any
	for _, f := range functions {
		running.Go(func() {
			defer func() {
				if recovered := recover(); recovered != nil {
					mu.Lock()
					defer mu.Unlock()
					fault = fmt.Errorf("%v\n%s", recovered, debug.Stack())
				}
			}()
			f()
		})
	}
	running.Wait()
	if fault != nil {
		panic(fault)
	}
}
