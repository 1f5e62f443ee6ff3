package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/api"
)

const shop, thief = "https://shop.example", "https://thief.example"

func sendFrom(t *testing.T, origins []string, r *http.Request) (answer, *fakeStore) {
	t.Helper()
	store := newStore()
	o := options(store)
	o.CORSOrigins = origins
	return serve(api.Handler(o), r), store
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		origins                      []string
		origin, method, header       string
		allowOrigin, allowed, maxAge string // allowed: method, then header
	}{
		"any origin":         {[]string{"*"}, shop, "POST", "content-type", "*", "POST content-type", "7200"},
		"listed":             {[]string{shop}, shop, "POST", "content-type", shop, "POST content-type", "7200"},
		"pattern":            {[]string{"https://*.example"}, shop, "GET", "", "https://shop.example", "GET ", "7200"},
		"not listed":         {[]string{shop}, thief, "POST", "content-type", "", " ", ""},
		"method not allowed": {[]string{"*"}, shop, "DELETE", "", "", " ", ""},
		"with a token":       {[]string{"*"}, shop, "POST", "authorization,content-type", "*", "POST authorization,content-type", "7200"},
		"header not allowed": {[]string{"*"}, shop, "POST", "cookie", "", " ", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), "OPTIONS", "/v1/videos/10001/play", nil)
			r.Header.Set("Origin", tt.origin)
			r.Header.Set("Access-Control-Request-Method", tt.method)
			if tt.header != "" {
				r.Header.Set("Access-Control-Request-Headers", tt.header)
			}
			res, _ := sendFrom(t, tt.origins, r)
			if res.status != http.StatusNoContent {
				t.Errorf("status = %d, want 204", res.status)
			}
			method, header, _ := strings.Cut(tt.allowed, " ")
			checkHeaders(t, res, map[string]string{
				"Access-Control-Allow-Origin":      tt.allowOrigin,
				"Access-Control-Allow-Methods":     method,
				"Access-Control-Allow-Headers":     header,
				"Access-Control-Max-Age":           tt.maxAge,
				"Access-Control-Allow-Credentials": "",
			})
			checkHeaders(t, res, safeHeaders)
		})
	}
}

func TestNoOrigins(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/videos/10001/viewers", nil)
	r.Header.Set("Origin", shop)
	res, _ := sendFrom(t, nil, r)
	checkHeaders(t, res, map[string]string{"Access-Control-Allow-Origin": "", "Cross-Origin-Resource-Policy": "same-origin"})
	if res.status != http.StatusOK {
		t.Errorf("status = %d, want 200", res.status)
	}
}

func TestBeaconIsRecordedWithoutPreflight(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/videos/10001/leave", strings.NewReader(`{"viewer_id":"u1","recorded_at":7}`))
	r.Header.Set("Origin", shop)
	r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	res, store := sendFrom(t, []string{shop}, r)
	if res.status != http.StatusNoContent {
		t.Errorf("status = %d, want 204", res.status)
	}
	if diff := cmp.Diff([]call{{"leave", "10001", "u1", 7}}, store.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	checkHeaders(t, res, map[string]string{"Access-Control-Allow-Origin": shop, "Vary": "Origin"})
}

func TestPagesCanReadProblems(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/videos//viewers", "/v1/nothing"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header.Set("Origin", shop)
		res, _ := sendFrom(t, []string{"*"}, r)
		checkHeaders(t, res, map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After",
		})
	}
}
