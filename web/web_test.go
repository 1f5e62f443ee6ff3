package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ask asks a handler for a path, with headers as pairs.
func ask(t *testing.T, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]http.Handler
		want  []string
	}{
		"scripts": {Scripts(), []string{"/adapters/iframe.mjs", "/adapters/preview.mjs", "/adapters/videojs.mjs", "/headcount.js", "/headcount.mjs"}},
		"demo":    {Demo(), []string{"/demo/crowd.js", "/demo/demo.css", "/demo/demo.js", "/demo/icon.svg", "/demo/pictures.js", "/demo/text.js", "/{$}"}},
		"console": {Console(), []string{
			"/console/chart.js", "/console/console.css", "/console/console.js", "/console/dialogs.js", "/console/dom.js", "/console/figures.js",
			"/console/format.js", "/console/icon.svg", "/console/kinds.js", "/console/markdown.js", "/console/tables.js", "/console/text.js",
			"/console/uplot/LICENSE.txt", "/console/uplot/VERSION.txt", "/console/uplot/uPlot.iife.min.js", "/console/uplot/uPlot.min.css",
			"/console/warnings.js", "/console/{$}",
		}},
	} {
		if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(test.files))); diff != "" {
			t.Errorf("paths of %s (-want +got):\n%s", name, diff)
		}
		for path, file := range test.files {
			if got := ask(t, file, strings.TrimSuffix(path, "{$}")); got.Code != http.StatusOK || got.Body.Len() == 0 || got.Header().Get("Content-Type") == "" {
				t.Errorf("%s: %d, %q, %d bytes; want 200 with a type and a body", path, got.Code, got.Header().Get("Content-Type"), got.Body.Len())
			}
		}
	}
}

// What names its version may be kept for good; what does not is asked for again.
func TestCaching(t *testing.T) {
	t.Parallel()
	script := Scripts()["/headcount.js"]
	first := ask(t, script, "/headcount.js")
	etag := first.Header().Get("ETag")
	version := strings.Trim(etag, `"`)
	if len(version) != 16 {
		t.Fatalf("ETag = %s, want 16 hexadecimal digits in quotes", etag)
	}
	for path, want := range map[string]string{
		"/headcount.js":                        "public, max-age=300",
		"/headcount.js?v=" + version:           "public, max-age=31536000, immutable",
		"/headcount.js?v=0123456789abcdef":     "public, max-age=300", // it gets another version
		"/headcount.js?v=" + version[:8]:       "public, max-age=300",
		"/headcount.js?x=1&v=" + version + "&": "public, max-age=31536000, immutable",
	} {
		if got := ask(t, script, path).Header().Get("Cache-Control"); got != want {
			t.Errorf("Cache-Control of %s = %q, want %q", path, got, want)
		}
	}
	if again := ask(t, script, "/headcount.js", "If-None-Match", etag); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("asked with the ETag: %d and %d bytes, want 304 and none", again.Code, again.Body.Len())
	}
	if got := first.Header().Get("Cross-Origin-Resource-Policy"); got != "cross-origin" {
		t.Errorf("Cross-Origin-Resource-Policy = %q, want cross-origin", got)
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	script := Scripts()["/headcount.js"]
	plain := ask(t, script, "/headcount.js")
	for accept, want := range map[string]string{
		"":                       "",
		"gzip":                   "gzip",
		"br, GZIP;q=0.5, *;q=0":  "gzip",
		"deflate,gzip ; q=1.0":   "gzip",
		"gzip;q=0, deflate":      "",
		"gzip; q=0.00":           "",
		"identity, xgzip, gzip2": "",
	} {
		got := ask(t, script, "/headcount.js", "Accept-Encoding", accept)
		if encoding := got.Header().Get("Content-Encoding"); encoding != want {
			t.Errorf("Content-Encoding for %q = %q, want %q", accept, encoding, want)
		}
		if !slices.Contains(got.Header().Values("Vary"), "Accept-Encoding") {
			t.Errorf("Vary for %q = %q, want Accept-Encoding", accept, got.Header().Values("Vary"))
		}
		body := got.Body.Bytes()
		if want == "gzip" {
			if got.Header().Get("ETag") == plain.Header().Get("ETag") {
				t.Errorf("the ETag for %q is that of the plain form", accept)
			}
			body = expand(t, body)
		}
		if !bytes.Equal(body, plain.Body.Bytes()) {
			t.Errorf("the body for %q is another", accept)
		}
	}
}

func expand(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	for path, h := range map[string]http.Handler{"/": Demo()["/{$}"], "/console/": Console()["/console/{$}"]} {
		page := ask(t, h, path)
		policy := page.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: Content-Security-Policy = %q, want nothing but the server's own files", path, policy)
		}
		if body := page.Body.String(); strings.Contains(body, "://") || strings.Contains(body, "style=") {
			t.Errorf("%s: the page names another place, or has inline style", path)
		}
	}
}

// The operator's page fits the program that serves it: after an update, no part of the old one is used.
func TestConsoleIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for path, file := range Console() {
		got := ask(t, file, strings.TrimSuffix(path, "{$}"))
		if cache := got.Header().Get("Cache-Control"); cache != "no-cache" {
			t.Errorf("%s: Cache-Control = %q, want no-cache", path, cache)
		}
		if again := ask(t, file, path, "If-None-Match", got.Header().Get("ETag")); again.Code != http.StatusNotModified {
			t.Errorf("%s: asked with its ETag: %d, want 304", path, again.Code)
		}
	}
}

// What others have made is as they published it, and says under which terms.
func TestVendoredChart(t *testing.T) {
	t.Parallel()
	version, err := os.ReadFile("console/uplot/VERSION.txt")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("console/uplot/uPlot.iife.min.js")
	if err != nil {
		t.Fatal(err)
	}
	number := strings.Fields(string(version))[1]
	if !strings.HasPrefix(string(script), "/*! https://github.com/leeoniya/uPlot (v"+strings.TrimSuffix(number, ",")+") */") {
		t.Errorf("uPlot begins with %.60q, want version %s", script, number)
	}
}

// The npm package holds what its manifest names.
func TestPackage(t *testing.T) {
	t.Parallel()
	var manifest struct {
		Exports map[string]any
		Types   string
		Files   []string
	}
	data, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	paths := append([]string{manifest.Types}, manifest.Files...)
	for _, export := range manifest.Exports {
		switch export := export.(type) {
		case string:
			paths = append(paths, export)
		case map[string]any:
			for _, path := range export {
				paths = append(paths, path.(string))
			}
		}
	}
	if len(paths) < 10 {
		t.Fatalf("only %q", paths)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("package.json: %v", err)
		}
	}
}
