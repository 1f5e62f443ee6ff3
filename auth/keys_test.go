package auth_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"headcount/auth"
)

const (
	form        = "not of the form kid:HS256:<base64> or kid:EdDSA:<base64>"
	badAlg      = "its algorithm is neither HS256 nor EdDSA"
	notBase64   = "its third part is not base64"
	taken       = "an earlier key has the same kid"
	shortSecret = "a secret of 31 bytes; HS256 needs at least 32"
	shortPublic = "a public key of 31 bytes; EdDSA has 32"
	longPublic  = "a public key of 44 bytes; EdDSA has 32"
)

// texts are those of errors.
func texts(errs []error) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}

func TestAddList(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, want string // want: why it is refused
	}{
		"HS256":                {entry("k", "HS256", secret), ""},
		"HS256, a longer one":  {entry("k", "HS256", slices.Concat(secret, secret, secret)), ""},
		"EdDSA":                {entry("k", "EdDSA", public), ""},
		"without padding":      {strings.TrimRight(entry("k", "HS256", secret), "="), ""},
		"the URL's alphabet":   {"k:HS256:" + strings.Repeat("-_", 22), ""},
		"the usual alphabet":   {"k:HS256:" + strings.Repeat("+/", 22), ""},
		"kid of any text":      {entry("2026-11 日本", "HS256", secret), ""},
		"empty":                {"", form},
		"the secret alone":     {base64.StdEncoding.EncodeToString(secret), form},
		"no kid":               {entry("", "HS256", secret), form},
		"no algorithm":         {"k:" + base64.StdEncoding.EncodeToString(secret), form},
		"four parts":           {entry("k:k", "HS256", secret), form},
		"alg none":             {"k:none:", badAlg},
		"alg in another case":  {entry("k", "hs256", secret), badAlg},
		"alg HS512":            {entry("k", "HS512", secret), badAlg},
		"no base64":            {"k:HS256:secret secret secret secret secret secret", notBase64},
		"bits beyond the last": {"k:HS256:" + strings.Repeat("/", 43), notBase64},
		"a passphrase":         {"k:HS256:hunter2", notBase64},
		"short":                {entry("k", "HS256", secret[1:]), shortSecret},
		"none at all":          {"k:HS256:", "a secret of 0 bytes; HS256 needs at least 32"},
		"short public key":     {entry("k", "EdDSA", public[1:]), shortPublic},
		"a DER public key":     {entry("k", "EdDSA", make([]byte, 44)), longPublic},
	}
	for name, tt := range tests {
		var want []string
		if tt.want != "" {
			want = []string{"entry 2: " + tt.want}
		}
		keys := new(auth.Keys)
		errs := keys.AddList([]string{entry("first", "HS256", nextSecret), tt.text})
		if diff := cmp.Diff(want, texts(errs)); diff != "" {
			t.Errorf("%s: errors (-want +got):\n%s", name, diff)
		}
		if want := 2 - len(want); len(keys.IDs()) != want {
			t.Errorf("%s: %d keys, want %d", name, len(keys.IDs()), want)
		}
	}
}

func TestAddListNamesEveryMistake(t *testing.T) {
	t.Parallel()
	errs := new(auth.Keys).AddList([]string{"", entry("k", "HS256", secret), "k:none:", entry("k", "EdDSA", public)})
	want := []string{"entry 1: " + form, "entry 3: " + badAlg, "entry 4: " + taken}
	if diff := cmp.Diff(want, texts(errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAddFile(t *testing.T) {
	t.Parallel()
	a, b := entry("a", "HS256", secret), entry("b", "EdDSA", public)
	missing := filepath.Join(t.TempDir(), "absent")
	tests := map[string]struct {
		path string
		keys int
		errs []string
	}{
		"one":              {writeFile(t, a), 1, nil},
		"with remarks":     {writeFile(t, "# since May\r\n"+a+"\r\n\n\t"+b+" \n"), 2, nil},
		"mistakes":         {writeFile(t, a+"\n\n# b:\nb:none:\n"+a+"\n"), 1, []string{"line 4: " + badAlg, "line 5: " + taken}},
		"a key that is in": {writeFile(t, entry("listed", "HS256", secret)), 0, []string{"line 1: " + taken}},
		"empty":            {writeFile(t, ""), 0, []string{"the file has no key"}},
		"remarks only":     {writeFile(t, "\n#"+a+"\n"), 0, []string{"the file has no key"}},
		"missing":          {missing, 0, []string{"no such file or directory"}},
	}
	for name, tt := range tests {
		keys := new(auth.Keys)
		if errs := keys.AddList([]string{entry("listed", "HS256", nextSecret)}); errs != nil {
			t.Fatal(errs)
		}
		if diff := cmp.Diff(tt.errs, texts(keys.AddFile(tt.path))); diff != "" {
			t.Errorf("%s: errors (-want +got):\n%s", name, diff)
		}
		if got := len(keys.IDs()) - 1; got != tt.keys {
			t.Errorf("%s: %d keys, want %d", name, got, tt.keys)
		}
	}
}

// A key from a file verifies like one from the list.
func TestAddFileVerifies(t *testing.T) {
	t.Parallel()
	keys := new(auth.Keys)
	if errs := keys.AddFile(writeFile(t, entry("hs", "HS256", secret))); errs != nil {
		t.Fatal(errs)
	}
	v := auth.New(auth.Options{Keys: keys, Now: nowFunc})
	checkVerify(t, "signed with it", v, hs256(t, nil), "")
	checkVerify(t, "signed with another", v, sign(t, jwt.SigningMethodHS256, nextSecret, object{"kid": "hs"}, valid(nil)), signature)
}

// keyTexts are all that the writer of a bad key is told, but for numbers.
var keyTexts = []string{form, badAlg, notBase64, "a secret of N bytes; HS256 needs at least 32", "a public key of N bytes; EdDSA has 32"}

var length = regexp.MustCompile(`of \d+ bytes`)

func FuzzKey(f *testing.F) {
	for _, seed := range []string{
		"", ":", "::", ":::", "k:HS256:", "k:EdDSA:", "k:none:", "k:HS256:====", "k:HS256:-_+/",
		entry("k", "HS256", secret), entry("k", "EdDSA", public), entry("k", "HS256", secret[1:]), entry("k", "EdDSA", public[1:]),
		"k:HS256:" + strings.Repeat("-_", 22), "k:HS256:" + strings.Repeat("\n", 40),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys := new(auth.Keys)
		errs := keys.AddList([]string{text})
		if len(errs) == 0 && len(keys.IDs()) == 1 {
			return
		}
		if len(errs) != 1 || len(keys.IDs()) != 0 {
			t.Fatalf("%q: %d keys and the errors %v, want one of either", text, len(keys.IDs()), errs)
		}
		got := length.ReplaceAllString(strings.TrimPrefix(errs[0].Error(), "entry 1: "), "of N bytes")
		if !slices.Contains(keyTexts, got) {
			t.Errorf("%q: error = %q, want one of ours", text, errs[0])
		}
	})
}
