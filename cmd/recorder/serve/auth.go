package serve

import (
	"errors"

	"go.uber.org/zap"

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

// playTokens returns what verifies play tokens, of a kind or, with "", of any. It
// verifies by nil without keys: nobody needs a token. Which of the two it is stands in the log,
// as a variable that is empty by mistake lets everybody in.
func playTokens(c config.Config, log *zap.Logger) (of func(kind string) api.Tokens, err error) {
	keys, listed, filed := readKeys(c.Auth)
	if err := errors.Join(append(listed, filed...)...); err != nil { // the file has changed since it was checked
		return nil, err
	}
	if len(keys.IDs()) == 0 {
		log.Info("plays need no token: auth.play_keys and auth.play_keys_file are empty")
		return func(string) api.Tokens { return nil }, nil
	}
	log.Info("plays need a token", zap.Strings("kids", keys.IDs()))
	return func(kind string) api.Tokens {
		return auth.New(auth.Options{Keys: keys, Kind: kind, DefaultKind: c.Prefixes()[0]})
	}, nil
}
