package api_test

import (
	"io"
	"net/http"
	"testing"

	"headcount/api"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	o := options(newStore())
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=300")
			_, _ = io.WriteString(w, text)
		})
	}
	o.Files = map[string]http.Handler{"/{$}": says("page"), "/script.js": says("script")}
	h := api.Handler(o)

	for path, want := range map[string]string{"/": "page", "/script.js": "script"} {
		got := send(t, h, http.MethodGet, path, "")
		if got.status != http.StatusOK || got.body != want {
			t.Errorf("GET %s = %d %q, want 200 %q", path, got.status, got.body, want)
		}
		checkHeaders(t, got, map[string]string{"Cache-Control": "public, max-age=300", "X-Content-Type-Options": "nosniff"})
		checkProblem(t, send(t, h, http.MethodPost, path, ""), http.StatusMethodNotAllowed, "allowed here: GET, HEAD")
	}
	checkProblem(t, send(t, h, http.MethodGet, "/other", ""), http.StatusNotFound, "no such path")
	checkProblem(t, send(t, api.Handler(options(newStore())), http.MethodGet, "/", ""), http.StatusNotFound, "no such path")
}
