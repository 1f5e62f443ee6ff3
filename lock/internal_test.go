package lock

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsDefaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options Options
		want    Options
	}{
		{
			name: "none set",
			want: Options{TTL: 15 * time.Second, Holder: Holder(), Timeout: 5 * time.Second, Retry: 500 * time.Millisecond},
		},
		{
			name:    "all set",
			options: Options{Key: "k", TTL: time.Minute, Holder: "h:1", Timeout: time.Second, Retry: 2 * time.Second},
			want:    Options{Key: "k", TTL: time.Minute, Holder: "h:1", Timeout: time.Second, Retry: 2 * time.Second},
		},
		{
			name:    "a TTL that is too short",
			options: Options{TTL: time.Millisecond, Holder: "h:1"},
			want:    Options{TTL: MinTTL, Holder: "h:1", Timeout: MinTTL / 3, Retry: MinTTL / 3},
		},
		{
			name:    "a timeout that is too long",
			options: Options{TTL: 3 * time.Second, Holder: "h:1", Timeout: 2 * time.Second},
			want:    Options{TTL: 3 * time.Second, Holder: "h:1", Timeout: time.Second, Retry: 500 * time.Millisecond},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.options.withDefaults()); diff != "" {
				t.Errorf("withDefaults() (-want +got):\n%s", diff)
			}
		})
	}
}

// The answer comes in after the trust has run out, but before the timer that ends the Term has had its turn.
func TestLateAnswerDoesNotRevive(t *testing.T) {
	t.Parallel()
	o := Options{TTL: time.Minute}
	term := &Term{ctx: t.Context(), options: o, until: time.Now(), expiry: time.NewTimer(time.Hour)}
	term.refreshed(time.Now(), nil)
	if term.Held() {
		t.Error("Held() = true after its trust had run out")
	}
}

// The timer fires while a refresh extends the trust.
func TestTimerThatFiredBeforeARefresh(t *testing.T) {
	t.Parallel()
	term := &Term{until: time.Now().Add(time.Hour)}
	term.ctx, term.cancel = context.WithCancelCause(t.Context())
	term.expire()
	if !term.Held() {
		t.Errorf("Held() = false, cause %v, want a Term that goes on", context.Cause(term.ctx))
	}
}
