package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overlay writes what go build's -overlay takes to compile file, a path from the repository's root, with one text in it
// replaced, and returns the flag. The text must be there exactly once.
func overlay(t testing.TB, file, text, replacement string) (flag string) {
	t.Helper()
	original, err := filepath.Abs(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), text); n != 1 {
		t.Fatalf("%s has the text to be replaced %d times, want once:\n%s", file, n, text)
	}
	dir := t.TempDir()
	replaced, list := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	content, err := json.Marshal(map[string]map[string]string{"Replace": {original: replaced}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{replaced: strings.Replace(string(source), text, replacement, 1), list: string(content)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "-overlay=" + list
}
