package api_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"headcount/api"
)

func ExampleHandler() {
	store := newStore()
	handler := api.Handler(api.Options{
		Recorder:    store,
		Lookup:      store,
		BeatAfter:   func() time.Duration { return 150 * time.Second },
		CORSOrigins: []string{"*"},
		CacheFor:    3 * time.Second,
		Timeout:     time.Second,
	})

	request := func(method, path, body string) {
		r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	request("POST", "/v1/videos/10001/play", `{"viewer_id":"u1"}`)
	request("GET", "/v1/videos/10001/viewers", "")
	request("POST", "/v1/videos/10001/play", `{"viewer_id":1}`)
	// Output:
	// 200 {"recorded_at":1700000000,"beat_after":150}
	// 200 {"video_id":"10001","viewers":23,"as_of":"2026-11-30T14:00:00Z"}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"viewer_id: must be a string"}
}
