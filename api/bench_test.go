package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"headcount/api"
)

// instant answers at once, so that a benchmark shows what the handler costs.
type instant struct{}

func (instant) Play(context.Context, string, string) (int64, error) { return 1_700_000_000, nil }

func (instant) Resume(context.Context, string, string) (int64, error) { return 1_700_000_000, nil }

func (instant) PlayAll(_ context.Context, videoIDs, _ []string) (int64, []error) {
	return 1_700_000_000, make([]error, len(videoIDs))
}

func (instant) Leave(context.Context, string, string, int64) error { return nil }

func (instant) Viewers(context.Context, string) (int64, time.Time, error) {
	return 23, time.Unix(1_700_000_000, 0), nil
}

func (instant) Batch(_ context.Context, videoIDs []string) ([]int64, time.Time, error) {
	return make([]int64, len(videoIDs)), time.Unix(1_700_000_000, 0), nil
}

func BenchmarkPlaysAndViewers(b *testing.B) {
	h := api.Handler(api.Options{
		Recorder:    instant{},
		Lookup:      instant{},
		BeatAfter:   func() time.Duration { return 150 * time.Second },
		CORSOrigins: []string{"*"},
		CacheFor:    3 * time.Second,
		Timeout:     2 * time.Second,
	})
	plays := make([]string, 500)
	for i := range plays {
		plays[i] = fmt.Sprintf(`{"video_id":"10001","viewer_id":"u%d"}`, i)
	}
	for _, bench := range []struct{ name, method, path, body string }{
		{"plays", http.MethodPost, "/v1/plays", `{"plays":[` + strings.Join(plays, ",") + `]}`},
		{"viewers", http.MethodGet, "/v1/videos/10001/viewers", ""},
	} {
		b.Run(bench.name, func(b *testing.B) {
			body := strings.NewReader("")
			r := httptest.NewRequestWithContext(b.Context(), bench.method, bench.path, body)
			w := silentWriter{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(bench.body)
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}
