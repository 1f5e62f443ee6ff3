package programtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// ConfigFile is a config.yaml that is replaced as Kubernetes replaces the files
// of a ConfigMap: the file is a link through ..data, a link that is swapped.
type ConfigFile struct {
	dir     string
	version int
}

// NewConfigFile writes a file that is gone when the test ends.
func NewConfigFile(t testing.TB, content string) *ConfigFile {
	t.Helper()
	f := &ConfigFile{dir: t.TempDir()}
	f.Replace(t, content)
	if err := os.Symlink(filepath.Join("..data", "config.yaml"), f.Path()); err != nil {
		t.Fatal(err)
	}
	return f
}

// Path is where the program reads the file.
func (f *ConfigFile) Path() string { return filepath.Join(f.dir, "config.yaml") }

// Replace puts other content in the file's place.
func (f *ConfigFile) Replace(t testing.TB, content string) {
	t.Helper()
	f.version++
	version := fmt.Sprintf("..version_%d", f.version)
	if err := os.Mkdir(filepath.Join(f.dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, version, "config.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(f.dir, "..data_tmp")
	if err := os.Symlink(version, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(f.dir, "..data")); err != nil {
		t.Fatal(err)
	}
}
