package workload

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headcount/bench/internal/dataset"
	"headcount/bench/internal/server"
	"headcount/internal/keys"
)

func TestReceipts(t *testing.T) {
	t.Parallel()
	part := `{"recorded":499,"errors":[{"index":3,"detail":"busy"}]}`
	for name, tt := range map[string]struct {
		status   int
		body     string
		recorded int
		fails    bool
	}{
		"all":          {http.StatusOK, `{"recorded":500,"errors":[]}`, 500, false},
		"in part":      {http.StatusOK, part, 499, false},
		"refused":      {http.StatusServiceUnavailable, ``, 0, false},
		"too few":      {http.StatusOK, `{"recorded":498,"errors":[]}`, 498, true},
		"another code": {http.StatusBadRequest, ``, 0, true},
	} {
		h := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
		}
		srv := httptest.NewServer(http.HandlerFunc(h))
		r, err := newFlood(srv.URL, dataset.Set{Videos: 2}).post(t.Context(), nil)
		srv.Close()
		if r.Recorded != tt.recorded || (err != nil) != tt.fails {
			t.Errorf("%s: got %d recorded, %v, want %d", name, r.Recorded, err, tt.recorded)
		}
	}
	var r receipt
	if err := json.Unmarshal([]byte(part), &r); err != nil || len(r.lost()) != 1 || !r.lost()[3] {
		t.Errorf("lost = %v, %v, want 3 only", r.lost(), err)
	}
}

// A play that was acknowledged and is not there is found, and one that was
// refused is not missed.
func TestMissing(t *testing.T) {
	t.Parallel()
	srv, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	f := newFlood("", dataset.Set{Videos: 2})
	var refused receipt
	if err := json.Unmarshal([]byte(`{"recorded":499,"errors":[{"index":3}]}`), &refused); err != nil {
		t.Fatal(err)
	}
	f.answers = []answer{{batch: 7, receipt: refused}, {batch: 8}}
	for i := range batchSize {
		if i == 3 || i == 4 { // one refused, one lost
			continue
		}
		key := keys.New("video").Online(f.set.VideoID(i % 2))
		if err := srv.Admin.HSet(t.Context(), key, floodViewer(7, i), 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := f.missing(t.Context(), srv); got != 1 || err != nil {
		t.Errorf("missing = %d, %v, want the 1 that was acknowledged", got, err)
	}
}

func TestFloodBodyIsJSON(t *testing.T) {
	t.Parallel()
	f := newFlood("", dataset.Set{Videos: 2})
	body := f.body(3)
	if !json.Valid(body) || strings.Count(string(body), "viewer_id") != batchSize {
		t.Errorf("body = %s, want JSON with %d plays", body, batchSize)
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	if got := growth([]float64{1, 1, 4, 4, 6, 6}); got != 1.5 {
		t.Errorf("growth = %v, want 1.5: the last third by the second", got)
	}
	if got := growth([]float64{2}); got != 1 {
		t.Errorf("growth of one reading = %v, want 1", got)
	}
}
