package serve

import (
	"errors"

	"headcount/api"
	"headcount/auth"
	"headcount/internal/config"
)

// Checks are those of the configuration's keys that only the recorder understands.
func Checks() map[string]func(config.Config) []error {
	return map[string]func(config.Config) []error{
		"auth.play_keys": func(c config.Config) []error {
			_, listed, _ := readKeys(c.Auth)
			return listed
		},
		"auth.play_keys_file": func(c config.Config) []error {
			_, _, filed := readKeys(c.Auth)
			return filed
		},
	}
}

// readKeys reads the keys of play tokens, and returns what is wrong with the
// list and with the file.
func readKeys(c config.Auth) (keys *auth.Keys, listed, filed []error) {
	keys = new(auth.Keys)
	listed = keys.AddList(c.PlayKeys)
	if c.PlayKeysFile != "" {
		filed = keys.AddFile(c.PlayKeysFile)
	}
	return keys, listed, filed
}

// playTokens verifies play tokens. It is nil without keys: nobody needs a token.
func playTokens(c config.Auth) (api.Tokens, error) {
	keys, listed, filed := readKeys(c)
	if err := errors.Join(append(listed, filed...)...); err != nil { // the file has changed since it was checked
		return nil, err
	}
	if keys.Len() == 0 {
		return nil, nil
	}
	return auth.New(auth.Options{Keys: keys}), nil
}
