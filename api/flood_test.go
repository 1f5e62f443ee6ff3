package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headcount/api"
	"headcount/internal/clientip"
	"headcount/internal/ratelimit"
)

// flooded is a handler with the limits that the recorder has by default, behind
// the proxy 10.0.0.1, in a bubble whose time stands still.
type flooded struct {
	api.Recorder
	http.Handler
	viewers map[string]bool // recorded
}

func (f *flooded) Play(_ context.Context, _, viewerID string) (int64, error) {
	f.viewers[viewerID] = true
	return 1700000000, nil
}

const perSecond, burst = 500, 2000

func inFlood(t *testing.T, test func(*testing.T, *flooded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		limiter, err := ratelimit.New(ratelimit.Options{PerSecond: perSecond, Burst: burst})
		if err != nil {
			t.Fatal(err)
		}
		defer limiter.Close()
		f := &flooded{viewers: map[string]bool{}}
		o := options(newStore())
		o.Recorder = f
		o.Limiter = limiter
		o.ClientAddr = clientip.Resolver{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}.Addr
		f.Handler = api.Handler(o)
		test(t, f)
	})
}

// play returns the status of a viewer's play from a peer that claims to pass on
// what comes from another address.
func (f *flooded) play(t *testing.T, peer, claimed, viewer string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/videos/10001/play", strings.NewReader(`{"viewer_id":"`+viewer+`"}`))
	r.RemoteAddr = peer
	if claimed != "" {
		r.Header.Set("X-Forwarded-For", claimed)
	}
	return serve(f, r).status
}

func (f *flooded) wantViewers(t *testing.T, want int) {
	t.Helper()
	if got := len(f.viewers); got != want {
		t.Errorf("%d viewers recorded, want %d", got, want)
	}
}

// A campus behind one address is as many viewers as it has.
func TestViewersBehindOneAddress(t *testing.T) {
	t.Parallel()
	inFlood(t, func(t *testing.T, f *flooded) {
		for i := range 30 {
			f.play(t, "203.0.113.9:4711", "", fmt.Sprintf("u%d", i))
		}
		f.wantViewers(t, 30)
	})
}

func TestFloodOfInventedViewers(t *testing.T) {
	t.Parallel()
	const peer = "203.0.113.9:4711"
	inFlood(t, func(t *testing.T, f *flooded) {
		for i := range 10_000 {
			want := http.StatusOK
			if i >= burst {
				want = http.StatusTooManyRequests
			}
			if got := f.play(t, peer, "", fmt.Sprintf("u%d", i)); got != want {
				t.Fatalf("play %d = %d, want %d", i, got, want)
			}
		}
		f.wantViewers(t, burst)
		if got := f.play(t, "203.0.113.10:4711", "", "neighbour"); got != http.StatusOK {
			t.Errorf("play of another address = %d, want 200", got)
		}

		<-time.After(time.Second)
		for i := range 10_000 {
			f.play(t, peer, "", fmt.Sprintf("v%d", i))
		}
		f.wantViewers(t, burst+1+perSecond)
	})
}

// Whoever is no trusted proxy claims in vain to be many.
func TestFloodOfClaimedAddresses(t *testing.T) {
	t.Parallel()
	inFlood(t, func(t *testing.T, f *flooded) {
		for i := range 10_000 {
			f.play(t, "203.0.113.9:4711", fmt.Sprintf("198.51.100.%d", i%256), fmt.Sprintf("u%d", i))
		}
		f.wantViewers(t, burst)
		for i := range 256 { // and what it claimed is charged to nobody
			if got := f.play(t, "10.0.0.1:4711", fmt.Sprintf("198.51.100.%d", i), "u1"); got != http.StatusOK {
				t.Errorf("play of 198.51.100.%d = %d, want 200", i, got)
			}
		}
	})
}
