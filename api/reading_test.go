package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"headcount/api"
)

// Whoever sends bodies and never ends them fills neither the memory nor the room
// of others.
func TestBodiesThatNeverEndKeepOthersIn(t *testing.T) {
	t.Parallel()
	o := options(newStore())
	o.ClientAddr = func(r *http.Request) netip.Addr { return netip.MustParseAddrPort(r.RemoteAddr).Addr() }
	h := api.Handler(o)
	var slow sync.WaitGroup
	var bodies []*io.PipeWriter
	hold := func(client string) {
		body, writer := io.Pipe()
		bodies = append(bodies, writer)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/plays", body)
		r.RemoteAddr = client
		slow.Go(func() { serve(h, r) })
		_, _ = writer.Write([]byte("{")) // returns when the handler has read it
	}
	batch := func(client string) answer {
		body, writer := io.Pipe() // its length is not told, so it takes the most there can be
		go func() {
			_, _ = writer.Write([]byte(playsBody(1)))
			_ = writer.Close()
		}()
		defer func() { _ = body.Close() }()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/plays", body)
		r.RemoteAddr = client
		return serve(h, r)
	}
	const alice, bob = "198.51.100.1:1", "198.51.100.2:1"
	for range 8 {
		hold(alice)
	}
	res := batch(alice)
	checkProblem(t, res, http.StatusServiceUnavailable, "too many batches are being read, try again")
	checkHeaders(t, res, map[string]string{"Retry-After": "1"})
	if res := batch(bob); res.status != http.StatusOK {
		t.Errorf("another client's batch: status = %d, want 200", res.status)
	}
	for i := range 7 {
		for range 8 {
			hold(netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 1).String())
		}
	}
	if res := batch(bob); res.status != http.StatusServiceUnavailable {
		t.Errorf("a batch beyond all room: status = %d, want 503", res.status)
	}
	for _, body := range bodies {
		_ = body.Close()
	}
	slow.Wait()
	if res := batch(alice); res.status != http.StatusOK {
		t.Errorf("a batch when there is room again: status = %d, want 200", res.status)
	}
}
