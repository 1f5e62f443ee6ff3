package web

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

var update = flag.Bool("update", false, "write headcount.js and headcount.mjs anew")

// bundle makes one file of src, minified, without touching the disk.
func bundle(t *testing.T, format api.Format, define map[string]string) []byte {
	t.Helper()
	result := api.Build(api.BuildOptions{
		EntryPoints:       []string{"src/headcount.js"},
		Bundle:            true,
		Format:            format,
		Define:            define,
		Target:            api.ES2022,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		Banner:            map[string]string{"js": "/* Headcount in the browser. Made of web/src by go generate ./web; how to use it: docs/browser.md */"},
	})
	for _, m := range result.Errors {
		t.Fatalf("%s", m.Text)
	}
	for _, m := range result.Warnings {
		t.Errorf("%s", m.Text)
	}
	return result.OutputFiles[0].Contents
}

// The files in the repository are what users load, without a build step of
// theirs: they must be those that the source makes, and small.
func TestBundles(t *testing.T) {
	t.Parallel()
	const limit = 4096 // bytes, compressed
	for name, want := range map[string][]byte{
		// A classic script has no import.meta; it asks the document for its address.
		"headcount.js":  bundle(t, api.FormatIIFE, map[string]string{"import.meta.url": "undefined"}),
		"headcount.mjs": bundle(t, api.FormatESModule, nil),
	} {
		if *update {
			if err := os.WriteFile(name, want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what src makes: run go generate ./web", name)
		}
		if n := compressedSize(t, got); n > limit {
			t.Errorf("%s is %d bytes compressed, want at most %d", name, n, limit)
		}
	}
}

func compressedSize(t *testing.T, data []byte) int {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}
