package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headcount/api"
)

func handlerWithMetrics(store *fakeStore) (http.Handler, *prometheus.Registry) {
	o := options(store)
	reg := prometheus.NewPedanticRegistry()
	o.Registerer = reg
	return api.Handler(o), reg
}

const countersHead = `
# HELP headcount_http_requests_total Requests answered, by route pattern, method and status code. Code 499: the client left before its 503.
# TYPE headcount_http_requests_total counter
`

func checkCounters(t *testing.T, reg *prometheus.Registry, want string) {
	t.Helper()
	if err := testutil.GatherAndCompare(reg, strings.NewReader(countersHead+want), "headcount_http_requests_total"); err != nil {
		t.Error(err)
	}
}

func checkInFlight(t *testing.T, reg *prometheus.Registry, want string) {
	t.Helper()
	const head = `
# HELP headcount_http_requests_in_flight Requests being answered now.
# TYPE headcount_http_requests_in_flight gauge
headcount_http_requests_in_flight `
	if err := testutil.GatherAndCompare(reg, strings.NewReader(head+want+"\n"), "headcount_http_requests_in_flight"); err != nil {
		t.Error(err)
	}
}

func TestRequestCounters(t *testing.T) {
	t.Parallel()
	h, reg := handlerWithMetrics(newStore())
	for _, req := range [][3]string{
		{"POST", "/v1/videos/secret1/play", `{"viewer_id":"u1"}`},
		{"POST", "/v1/videos/%2F/play", `{"viewer_id":"u1"}`},
		{"POST", "/v1/videos/secret1/play", `{"viewer_id":1}`},
		{"POST", "/v1/videos/secret1/leave", `{"viewer_id":"u1"}`},
		{"GET", "/v1/videos/secret1/viewers", ""},
		{"HEAD", "/v1/videos/secret1/viewers", ""},
		{"BREW", "/v1/videos/secret1/viewers", ""},
		{"POST", "/v1/plays", `{"plays":[{"video_id":"secret1","viewer_id":"u1"}]}`},
		{"POST", "/v1/plays", `{"plays":1}`},
		{"GET", "/v1/viewers?video_id=secret1&video_id=secret4", ""},
		{"HEAD", "/v1/viewers?video_id=secret1", ""},
		{"GET", "/v1/viewers", ""},
		{"POST", "/v1/viewers?video_id=secret1", ""},
		{"GET", "/v1/secret2", ""},
		{"SECRET3", "/v1/secret2", ""},
		{"POST", "/v1/videos//play", `{"viewer_id":"u1"}`},
	} {
		send(t, h, req[0], req[1], req[2])
	}
	checkCounters(t, reg, `
headcount_http_requests_total{code="200",method="POST",route="/v1/videos/{video_id}/play"} 2
headcount_http_requests_total{code="400",method="POST",route="/v1/videos/{video_id}/play"} 1
headcount_http_requests_total{code="204",method="POST",route="/v1/videos/{video_id}/leave"} 1
headcount_http_requests_total{code="200",method="GET",route="/v1/videos/{video_id}/viewers"} 1
headcount_http_requests_total{code="200",method="HEAD",route="/v1/videos/{video_id}/viewers"} 1
headcount_http_requests_total{code="405",method="other",route="/v1/videos/{video_id}/viewers"} 1
headcount_http_requests_total{code="200",method="POST",route="/v1/plays"} 1
headcount_http_requests_total{code="400",method="POST",route="/v1/plays"} 1
headcount_http_requests_total{code="200",method="GET",route="/v1/viewers"} 1
headcount_http_requests_total{code="200",method="HEAD",route="/v1/viewers"} 1
headcount_http_requests_total{code="400",method="GET",route="/v1/viewers"} 1
headcount_http_requests_total{code="405",method="POST",route="/v1/viewers"} 1
headcount_http_requests_total{code="404",method="GET",route="other"} 1
headcount_http_requests_total{code="404",method="other",route="other"} 1
headcount_http_requests_total{code="400",method="POST",route="other"} 1
`)
	checkInFlight(t, reg, "0")
}

func TestRequestDurations(t *testing.T) {
	t.Parallel()
	h, reg := handlerWithMetrics(newStore())
	send(t, h, "GET", "/v1/videos/10001/viewers", "")
	send(t, h, "GET", "/v1/videos/10002/viewers", "")
	send(t, h, "GET", "/nothing", "")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, family := range families {
		if family.GetName() != "headcount_http_request_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			got[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
		}
	}
	if len(got) != 2 || got["/v1/videos/{video_id}/viewers"] != 2 || got["other"] != 1 {
		t.Errorf("observations = %v, want 2 of viewers and 1 other", got)
	}
}

func TestInFlightDuringRequest(t *testing.T) {
	t.Parallel()
	store := newStore()
	h, reg := handlerWithMetrics(store)
	store.hook = func(context.Context) error {
		checkInFlight(t, reg, "1")
		return nil
	}
	send(t, h, "GET", "/v1/videos/10001/viewers", "")
	checkInFlight(t, reg, "0")
}

func TestPanicIsCounted(t *testing.T) {
	t.Parallel()
	store := newStore()
	store.hook = func(context.Context) error { panic("broken") }
	h, reg := handlerWithMetrics(store)
	func() {
		defer func() {
			if got := recover(); got != "broken" {
				t.Errorf("recovered %v, want the handler's panic", got)
			}
		}()
		send(t, h, "GET", "/v1/videos/10001/viewers", "")
	}()
	checkInFlight(t, reg, "0")
	checkCounters(t, reg, `headcount_http_requests_total{code="500",method="GET",route="/v1/videos/{video_id}/viewers"} 1
`)
}

func TestClientGoneIsNoOutage(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	store := newStore()
	store.hook = func(ctx context.Context) error {
		leave()
		<-ctx.Done()
		return ctx.Err()
	}
	h, reg := handlerWithMetrics(store)
	res := serve(h, httptest.NewRequestWithContext(ctx, "GET", "/v1/videos/10001/viewers", nil))
	if res.status != http.StatusServiceUnavailable { // never a 200, which net/http writes for no answer
		t.Errorf("status = %d, want 503", res.status)
	}
	checkCounters(t, reg, `headcount_http_requests_total{code="499",method="GET",route="/v1/videos/{video_id}/viewers"} 1
`)
}
