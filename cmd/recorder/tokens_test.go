package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

var (
	tokenSecret  = []byte("0123456789abcdef0123456789abcdef")
	tokenPrivate = ed25519.NewKeyFromSeed(tokenSecret)
	sharedKey    = "shared:HS256:" + base64.StdEncoding.EncodeToString(tokenSecret)
	publicKey    = "pair:EdDSA:" + base64.StdEncoding.EncodeToString(tokenPrivate.Public().(ed25519.PublicKey))
)

// token is a play token that expires after some time, or has if that is negative.
func token(t *testing.T, kid, video, viewer string, lasts time.Duration) string {
	t.Helper()
	claims := jwt.MapClaims{"vid": video, "sub": viewer, "exp": time.Now().Add(lasts).Unix()}
	method, key := jwt.SigningMethod(jwt.SigningMethodHS256), any(tokenSecret)
	if kid == "pair" {
		method, key = jwt.SigningMethodEdDSA, tokenPrivate
	}
	unsigned := jwt.NewWithClaims(method, claims)
	unsigned.Header["kid"] = kid
	signed, err := unsigned.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// One key comes from the environment, one from a file, and both count.
func TestPlayTokens(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("# the course site's\n"+publicKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const viewer = "VIEWER-20419"
	s := start(t, redistest.Shared(t), "HEADCOUNT_AUTH_PLAY_KEYS="+sharedKey, "HEADCOUNT_AUTH_PLAY_KEYS_FILE="+file,
		"HEADCOUNT_LOOKUP_CACHE=0s", "HEADCOUNT_LOG_LEVEL=debug")
	shared, pair := token(t, "shared", "10001", viewer, time.Hour), token(t, "pair", "10001", viewer+"-2", time.Hour)
	expired := token(t, "shared", "10001", viewer, -time.Hour)
	var answers strings.Builder
	for _, step := range []struct {
		op, body string
		code     int
		viewers  int // who watch then
	}{
		{"play", `{"viewer_id":"` + viewer + `"}`, 401, 0},
		{"play", `{"token":"` + expired + `"}`, 401, 0},
		{"play", `{"token":"` + shared[:len(shared)-1] + `"}`, 401, 0},
		{"play", `{"token":"` + token(t, "shared", "10002", viewer, time.Hour) + `"}`, 403, 0},
		{"play", `{"viewer_id":"` + viewer + `-2","token":"` + shared + `"}`, 403, 0},
		{"play", `{"token":"` + shared + `"}`, 200, 1},
		{"play", `{"viewer_id":"` + viewer + `-2","token":"` + pair + `"}`, 200, 2},
		{"leave", `{"viewer_id":"` + viewer + `"}`, 401, 2},
		{"leave", `{"viewer_id":"` + viewer + `-2","token":"` + shared + `"}`, 403, 2},
		{"leave", `{"token":"` + shared + `"}`, 204, 1},
		{"leave", `{"token":"` + pair + `"}`, 204, 0},
	} {
		got := programtest.Post(t, s.video("10001", step.op), step.body)
		if got.Code != step.code {
			t.Errorf("%s %s = %v, want %d", step.op, step.body, got, step.code)
		}
		fmt.Fprintln(&answers, got)
		if got := s.redis.Client().HLen(t.Context(), s.keys.Online("10001")).Val(); got != int64(step.viewers) {
			t.Errorf("after %s %s: %d viewers, want %d", step.op, step.body, got, step.viewers)
		}
	}
	s.wantViewers(t, "10001", 0) // which needs no token
	if err := s.Stop(t); err != nil {
		t.Fatal(err)
	}
	told := answers.String() + s.Output()
	for _, secret := range []string{viewer, shared, expired, strings.Split(shared, ".")[1], strings.Split(sharedKey, ":")[2]} {
		if strings.Contains(told, secret) {
			t.Errorf("%s is in an answer or in the log:\n%s", secret, told)
		}
	}
}

func TestPlayTokenInHeader(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t), "HEADCOUNT_AUTH_PLAY_KEYS="+sharedKey+", "+publicKey)
	for _, kid := range []string{"shared", "pair"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.video("10001", "play"), strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token(t, kid, "10001", kid, time.Hour))
		r.Close = true
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("play with %s = %d, want 200", kid, res.StatusCode)
		}
	}
	if got := s.redis.Client().HLen(t.Context(), s.keys.Online("10001")).Val(); got != 2 {
		t.Errorf("%d viewers, want 2", got)
	}
}

// A page that gives tokens works on a recorder that wants none.
func TestPlayTokenIsIgnoredWithoutKeys(t *testing.T) {
	t.Parallel()
	s := start(t, redistest.Shared(t))
	body := `{"viewer_id":"u1","token":"` + token(t, "shared", "10002", "u2", -time.Hour) + `"}`
	programtest.Post(t, s.video("10001", "play"), body).OK(t)
}

// A recorder that was meant to want tokens must not start without.
func TestRefusedPlayKeys(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{
		"HEADCOUNT_AUTH_PLAY_KEYS=" + sharedKey + ",k:HS256:aHVudGVyMg==": "HEADCOUNT_AUTH_PLAY_KEYS: auth.play_keys: entry 2: a secret of 7 bytes; HS256 needs at least 32",
		"HEADCOUNT_AUTH_PLAY_KEYS=hunter2":                                "HEADCOUNT_AUTH_PLAY_KEYS: auth.play_keys: entry 1: not of the form kid:HS256:<base64> or kid:EdDSA:<base64>",
		"HEADCOUNT_AUTH_PLAY_KEYS_FILE=" + empty:                          "HEADCOUNT_AUTH_PLAY_KEYS_FILE: auth.play_keys_file: the file has no key",
		"HEADCOUNT_AUTH_PLAY_KEYS_FILE=/nowhere/keys":                     "HEADCOUNT_AUTH_PLAY_KEYS_FILE: auth.play_keys_file: no such file or directory",
	} {
		for _, args := range [][]string{nil, {"--check-config"}} {
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), programtest.Limit) // should it start after all
			err := run(ctx, args, func() []string { return append(programtest.Env("127.0.0.1:1", "p"), env) }, &out)
			cancel()
			if err == nil || err.Error() != want {
				t.Errorf("run(%v) with %s = %v, want %s", args, env, err, want)
			}
			if out.Len() > 0 {
				t.Errorf("run(%v) with %s printed %q, want nothing", args, env, &out)
			}
		}
	}
}

func TestCheckConfigHidesPlayKeys(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	env := []string{"HEADCOUNT_AUTH_PLAY_KEYS=" + sharedKey}
	if err := run(t.Context(), []string{"--check-config"}, func() []string { return env }, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `play_keys: ["***"]`) || strings.Contains(got, strings.Split(sharedKey, ":")[2]) {
		t.Errorf("printed:\n%swant the key hidden", got)
	}
}
