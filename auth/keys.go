package auth

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	algHS256 = "HS256"
	algEdDSA = "EdDSA"
)

// minSecret is the shortest secret for HS256 in bytes, as RFC 7518 demands: a
// shorter one can be found by trying.
const minSecret = 32

// Keys are the keys that tokens may be signed with. The zero value has none.
//
// Each is written as kid:HS256:<base64 of the secret> or kid:EdDSA:<base64 of
// the 32-byte public key>, in either alphabet of base64 and with or without
// padding. No error repeats what was written, as that is secret.
type Keys struct{ byID map[string]key }

type key struct {
	alg    string
	verify any // []byte for HS256, ed25519.PublicKey for EdDSA
}

// IDs are the kids of the keys, sorted. They are no secrets.
func (k *Keys) IDs() []string { return slices.Sorted(maps.Keys(k.byID)) }

// AddList adds keys and returns what is wrong with which entry, counted from 1.
func (k *Keys) AddList(entries []string) []error {
	var errs []error
	for i, entry := range entries {
		if err := k.add(entry); err != nil {
			errs = append(errs, fmt.Errorf("entry %d: %w", i+1, err))
		}
	}
	return errs
}

// AddFile adds the keys of a file with one on a line, and returns what is wrong
// with which line. Empty lines and those that begin with # are skipped. A file
// without a key is a mistake: whoever names one wants tokens.
func (k *Keys) AddFile(path string) []error {
	content, err := os.ReadFile(path)
	var failed *os.PathError
	if errors.As(err, &failed) { // without the path, in whose place a key may have been given
		return []error{failed.Err}
	}
	if err != nil {
		return []error{err}
	}
	var errs []error
	found, number := false, 0
	for line := range strings.Lines(string(content)) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		found = true
		if err := k.add(line); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
		}
	}
	if !found {
		return []error{errors.New("the file has no key")}
	}
	return errs
}

func (k *Keys) add(text string) error {
	id, added, err := parseKey(text)
	if err != nil {
		return err
	}
	if _, taken := k.byID[id]; taken {
		return errors.New("an earlier key has the same kid")
	}
	if k.byID == nil {
		k.byID = map[string]key{}
	}
	k.byID[id] = added
	return nil
}

func parseKey(text string) (id string, k key, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] == "" {
		return "", key{}, errors.New("not of the form kid:HS256:<base64> or kid:EdDSA:<base64>")
	}
	id, k.alg = parts[0], parts[1]
	value, err := decodeBase64(parts[2])
	switch {
	case k.alg != algHS256 && k.alg != algEdDSA:
		err = fmt.Errorf("its algorithm is neither %s nor %s", algHS256, algEdDSA)
	case err != nil:
		err = errors.New("its third part is not base64")
	case k.alg == algHS256 && len(value) < minSecret:
		err = fmt.Errorf("a secret of %d bytes; %s needs at least %d", len(value), algHS256, minSecret)
	case k.alg == algHS256:
		k.verify = value
	case len(value) != ed25519.PublicKeySize:
		err = fmt.Errorf("a public key of %d bytes; %s has %d", len(value), algEdDSA, ed25519.PublicKeySize)
	default:
		k.verify = ed25519.PublicKey(value)
	}
	return id, k, err
}

// decodeBase64 takes both alphabets: openssl writes the one, JWKs the other.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	return base64.RawStdEncoding.Strict().DecodeString(text)
}
