// Package web is what browsers load: the script that counts viewers and shows
// how many there are, the demo, and the operator's page. It is embedded in the programs.
package web

//go:generate go test . -run TestBundles -update

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed headcount.js headcount.mjs adapters/*.mjs
var scripts embed.FS

//go:embed demo
var demo embed.FS

//go:embed console
var console embed.FS

// Scripts returns handlers for the scripts that pages load, by path.
func Scripts() map[string]http.Handler { return handlers(scripts, scriptHeaders) }

// Demo returns handlers for the demo's pages, by path; its first page is "/{$}".
func Demo() map[string]http.Handler { return handlers(demo, demoHeaders) }

// Console returns handlers for the operator's page, by path.
func Console() map[string]http.Handler { return handlers(console, consoleHeaders) }

// Any page may load the scripts, also one that is isolated from other origins.
var scriptHeaders = map[string]string{"Cross-Origin-Resource-Policy": "cross-origin"}

// The demo loads nothing from elsewhere, has no inline code, and is framed by
// nobody but itself.
var demoHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
	"Referrer-Policy": "no-referrer",
}

// The operator's page is as strict, and asked for again each time, so that it fits the
// program that answers it.
var consoleHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cache-Control":                "no-cache",
}

// handlers has one for each file. It panics where the embedded files are broken.
func handlers(files fs.FS, headers map[string]string) map[string]http.Handler {
	all := map[string]http.Handler{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		all[pattern(name)] = newFile(name, content, headers)
		return nil
	})
	if err != nil {
		panic(err) // it was read when the program was built
	}
	return all
}

// pattern is the path of a file; that of a page, which ends in a slash, matches
// no longer one.
func pattern(name string) string {
	switch name {
	case "demo/index.html":
		return "/{$}"
	case "console/index.html":
		return "/console/{$}"
	}
	return "/" + name
}

// file answers with its content, compressed for those who take that.
type file struct {
	headers         map[string]string
	version         string // changes with the content
	plain, squeezed []byte
}

// types are by ending: those that the machine has may differ.
var types = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

func newFile(name string, content []byte, headers map[string]string) *file {
	hash := sha256.Sum256(content)
	f := &file{headers: map[string]string{}, version: hex.EncodeToString(hash[:8]), plain: content}
	for key, value := range headers {
		f.headers[key] = value
	}
	f.headers["Content-Type"] = types[path.Ext(name)]
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // fails for an unknown level only
	_, _ = w.Write(content)                                 // to memory
	_ = w.Close()
	f.squeezed = out.Bytes()
	return f
}

// How long browsers and CDNs keep a file: for good when the address names the
// version that it gets, and otherwise so long that a new one is soon in use.
const (
	keepVersion = "public, max-age=31536000, immutable"
	keepLatest  = "public, max-age=300"
)

func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for key, value := range f.headers {
		h.Set(key, value)
	}
	h.Add("Vary", "Accept-Encoding") // and what it varies by already
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", keepLatest)
	}
	if r.URL.Query().Get("v") == f.version {
		h.Set("Cache-Control", keepVersion)
	}
	content := f.plain
	h.Set("ETag", `"`+f.version+`"`)
	if takesGzip(r) {
		content = f.squeezed
		h.Set("Content-Encoding", "gzip")
		h.Set("ETag", `"`+f.version+`-gzip"`)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// takesGzip reports whether the client names gzip and does not refuse it.
func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(weight, "q=0.") != "" || weight == ""
		}
	}
	return false
}
