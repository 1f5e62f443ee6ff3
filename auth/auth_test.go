package auth_test

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"headcount/auth"
)

// now is when the tokens of these tests are verified.
var now = time.Unix(1_700_000_000, 0)

func nowFunc() time.Time { return now }

var (
	secret     = []byte("0123456789abcdef0123456789abcdef")
	nextSecret = []byte("fedcba9876543210fedcba9876543210")
	private    = ed25519.NewKeyFromSeed(secret)
	public     = private.Public().(ed25519.PublicKey)
)

// entry is a key as it is configured.
func entry(kid, alg string, key []byte) string {
	return kid + ":" + alg + ":" + base64.StdEncoding.EncodeToString(key)
}

func newVerifier(t testing.TB, entries ...string) *auth.Verifier {
	t.Helper()
	keys := new(auth.Keys)
	if errs := keys.AddList(entries); errs != nil {
		t.Fatalf("AddList: %v", errs)
	}
	return auth.New(auth.Options{Keys: keys, Now: nowFunc})
}

// both is a verifier with a key of each kind: "hs" and "ed".
func both(t testing.TB) *auth.Verifier {
	t.Helper()
	return newVerifier(t, entry("hs", "HS256", secret), entry("ed", "EdDSA", public))
}

type object = map[string]any

// valid are the claims of a token that is accepted; changes are made to them,
// nil removes one.
func valid(changes object) jwt.MapClaims {
	return jwt.MapClaims(with(object{"vid": "10001", "sub": "u1", "exp": now.Unix() + 60}, changes))
}

func with(fields, changes object) object {
	for name, value := range changes {
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}
	return fields
}

// sign signs a token; the header's fields are changed before.
func sign(t testing.TB, method jwt.SigningMethod, key any, header object, claims jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	with(token.Header, header)
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func hs256(t testing.TB, changes object) string {
	t.Helper()
	return sign(t, jwt.SigningMethodHS256, secret, object{"kid": "hs"}, valid(changes))
}

func eddsa(t testing.TB, changes object) string {
	t.Helper()
	return sign(t, jwt.SigningMethodEdDSA, private, object{"kid": "ed"}, valid(changes))
}

func TestVerify(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("\u00e9", 128)
	tests := map[string]struct{ token, video, viewer string }{
		"HS256":                  {hs256(t, nil), "10001", "u1"},
		"EdDSA":                  {eddsa(t, nil), "10001", "u1"},
		"longest ids":            {hs256(t, object{"vid": longest, "sub": longest}), longest, longest},
		"other claims":           {hs256(t, object{"aud": []string{"a", "b"}, "iss": "x", "iat": now.Unix() + 3600, "role": object{}}), "10001", "u1"},
		"expired within leeway":  {hs256(t, object{"exp": now.Unix() - 29}), "10001", "u1"},
		"not yet, within leeway": {hs256(t, object{"nbf": now.Unix() + 30}), "10001", "u1"},
		"fraction of a second":   {hs256(t, object{"exp": float64(now.Unix()) + .5}), "10001", "u1"},
		"last second of 9999":    {hs256(t, object{"exp": 253402300799}), "10001", "u1"},
		"another typ":            {sign(t, jwt.SigningMethodHS256, secret, object{"kid": "hs", "typ": nil}, valid(nil)), "10001", "u1"},
	}
	v := both(t)
	for name, tt := range tests {
		video, viewer, err := v.Verify(tt.token)
		if video != tt.video || viewer != tt.viewer || err != nil {
			t.Errorf("%s: got %q, %q, %v; want %q, %q", name, video, viewer, err, tt.video, tt.viewer)
		}
	}
}

const (
	malformed  = "not a JWT whose claims have the right types"
	unknownKey = "its header names no key that is known here (kid)"
	algorithm  = "its header names another algorithm than the key's (alg)"
	critical   = "its header demands an extension that is not known here (crit)"
	signature  = "its signature is not that of the key it names"
	expired    = "expired (exp)"
	notYet     = "not valid yet (nbf)"
	incomplete = "lacks one of the claims exp, vid and sub"
	expiry     = "does not expire before the year 10000; exp is in seconds"
	tooLarge   = "larger than 4096 bytes"
)

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	hs := func(header object) string {
		return sign(t, jwt.SigningMethodHS256, secret, with(object{"kid": "hs"}, header), valid(nil))
	}
	tests := map[string]struct{ token, want string }{
		"empty":              {"", malformed},
		"no JWT":             {"secret", malformed},
		"two parts":          {"e30.e30", malformed},
		"four parts":         {hs256(t, nil) + ".e30", malformed},
		"header not base64":  {"!" + hs256(t, nil), malformed},
		"header not JSON":    {edit(hs256(t, nil), 0, `{"alg`), malformed},
		"claims not JSON":    {edit(hs256(t, nil), 1, `{"exp`), malformed},
		"claims null":        {edit(hs256(t, nil), 1, `null`), signature},
		"padded":             {hs256(t, nil) + "=", malformed},
		"vid a number":       {hs256(t, object{"vid": 10001}), malformed},
		"sub a number":       {hs256(t, object{"sub": 1}), malformed},
		"exp a text":         {hs256(t, object{"exp": "tomorrow"}), malformed},
		"alg missing":        {edit(hs256(t, nil), 0, `{"kid":"hs"}`), algorithm},
		"alg unheard of":     {edit(hs256(t, nil), 0, `{"alg":"HS257","kid":"hs"}`), algorithm},
		"alg none":           {sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, object{"kid": "hs"}, valid(nil)), algorithm},
		"alg none, signed":   {edit(hs256(t, nil), 0, `{"alg":"none","kid":"hs"}`), algorithm},
		"alg NONE":           {edit(hs256(t, nil), 0, `{"alg":"NONE","kid":"hs"}`), algorithm},
		"HS384":              {sign(t, jwt.SigningMethodHS384, secret, object{"kid": "hs"}, valid(nil)), algorithm},
		"HS512":              {sign(t, jwt.SigningMethodHS512, secret, object{"kid": "hs"}, valid(nil)), algorithm},
		"public as a secret": {sign(t, jwt.SigningMethodHS256, []byte(public), object{"kid": "ed"}, valid(nil)), algorithm},
		"EdDSA for a secret": {sign(t, jwt.SigningMethodEdDSA, private, object{"kid": "hs"}, valid(nil)), algorithm},
		"kid missing":        {hs(object{"kid": nil}), unknownKey},
		"kid empty":          {hs(object{"kid": ""}), unknownKey},
		"kid unknown":        {hs(object{"kid": "HS"}), unknownKey},
		"kid a list":         {hs(object{"kid": []string{"hs"}}), unknownKey},
		"crit":               {hs(object{"crit": []string{"exp"}}), critical},
		"another secret":     {sign(t, jwt.SigningMethodHS256, nextSecret, object{"kid": "hs"}, valid(nil)), signature},
		"another private":    {sign(t, jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed(nextSecret), object{"kid": "ed"}, valid(nil)), signature},
		"no signature":       {hs256(t, nil)[:strings.LastIndexByte(hs256(t, nil), '.')+1], signature},
		"another viewer":     {edit(hs256(t, nil), 1, `{"vid":"10001","sub":"u2","exp":1700000060}`), signature},
		"longer life":        {edit(eddsa(t, nil), 1, `{"vid":"10001","sub":"u1","exp":1800000000}`), signature},
		"expired":            {hs256(t, object{"exp": now.Unix() - 30}), expired},
		"expired, EdDSA":     {eddsa(t, object{"exp": now.Unix() - 3600}), expired},
		"expired long ago":   {hs256(t, object{"exp": 0}), expired},
		"not yet":            {hs256(t, object{"nbf": now.Unix() + 31}), notYet},
		"exp missing":        {hs256(t, object{"exp": nil}), incomplete},
		"vid missing":        {hs256(t, object{"vid": nil}), incomplete},
		"vid empty":          {hs256(t, object{"vid": ""}), incomplete},
		"sub missing":        {eddsa(t, object{"sub": nil}), incomplete},
		"sub empty":          {hs256(t, object{"sub": ""}), incomplete},
		"exp in ms":          {hs256(t, object{"exp": now.UnixMilli() + 60_000}), expiry},
		"large":              {hs256(t, object{"role": strings.Repeat("x", 3000)}), tooLarge},
		"large and nothing":  {strings.Repeat("secret", 1000), tooLarge},
	}
	v := both(t)
	for name, tt := range tests {
		video, viewer, err := v.Verify(tt.token)
		if err == nil || err.Error() != tt.want || video != "" || viewer != "" {
			t.Errorf("%s: got %q, %q, %v; want %s", name, video, viewer, err, tt.want)
		}
	}
}

// edit replaces one of a token's parts.
func edit(token string, part int, content string) string {
	parts := strings.Split(token, ".")
	parts[part] = base64.RawURLEncoding.EncodeToString([]byte(content))
	return strings.Join(parts, ".")
}

// Whichever byte of a token is changed, it is refused.
func TestVerifyRefusesTamperedTokens(t *testing.T) {
	t.Parallel()
	v := both(t)
	for _, token := range []string{hs256(t, nil), eddsa(t, nil)} {
		for i := range token {
			others := "AQx_."
			if i == len(token)-1 { // which has bits to spare
				others = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.="
			}
			for _, c := range others {
				changed := token[:i] + string(c) + token[i+1:]
				if _, _, err := v.Verify(changed); err == nil && changed != token {
					t.Errorf("byte %d as %q: accepted", i, c)
				}
			}
		}
	}
}

// A key is exchanged in three steps, and at each the tokens in use are accepted.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	token := func(kid string, key []byte) string {
		return sign(t, jwt.SigningMethodHS256, key, object{"kid": kid}, valid(nil))
	}
	old, next := token("old", secret), token("next", nextSecret)
	oldKey, nextKey := entry("old", "HS256", secret), entry("next", "HS256", nextSecret)
	for name, tt := range map[string]struct {
		keys      []string
		old, next string
	}{
		"before": {[]string{oldKey}, "", unknownKey},
		"while":  {[]string{oldKey, nextKey}, "", ""},
		"after":  {[]string{nextKey}, unknownKey, ""},
	} {
		v := newVerifier(t, tt.keys...)
		checkVerify(t, name+", old token", v, old, tt.old)
		checkVerify(t, name+", next token", v, next, tt.next)
		checkVerify(t, name+", next kid with the old key", v, token("next", secret), cmp.Or(tt.next, signature))
	}
}

// checkVerify checks the reason that a token is refused for, "" for none.
func checkVerify(t *testing.T, name string, v *auth.Verifier, token, want string) {
	t.Helper()
	got := ""
	if _, _, err := v.Verify(token); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s: refused with %q, want %q", name, got, want)
	}
}

func TestNoKeys(t *testing.T) {
	t.Parallel()
	checkVerify(t, "no keys", newVerifier(t), hs256(t, nil), unknownKey)
}

// With no clock given, it is the process's.
func TestClock(t *testing.T) {
	t.Parallel()
	keys := new(auth.Keys)
	if errs := keys.AddList([]string{entry("hs", "HS256", secret)}); errs != nil {
		t.Fatal(errs)
	}
	v := auth.New(auth.Options{Keys: keys})
	checkVerify(t, "valid for a minute from now", v, hs256(t, object{"exp": time.Now().Unix() + 60}), "")
	checkVerify(t, "expired a minute ago", v, hs256(t, object{"exp": time.Now().Unix() - 60}), expired)
}

func BenchmarkVerify(b *testing.B) {
	v := both(b)
	for name, token := range map[string]string{"HS256": hs256(b, nil), "EdDSA": eddsa(b, nil)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := v.Verify(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// reasonTexts are all that a refused token is told.
var reasonTexts = []string{malformed, unknownKey, algorithm, critical, signature, expired, notYet, incomplete, expiry, tooLarge}

func FuzzVerify(f *testing.F) {
	// A fuzzer cannot sign: what is accepted must be one of these.
	good := map[string]bool{
		hs256(f, nil): true,
		eddsa(f, nil): true,
		hs256(f, object{"vid": "日本語😀", "nbf": 0, "aud": []string{"a"}}): true,
	}
	for token := range good {
		f.Add(token)
	}
	for _, seed := range []string{
		"", ".", "..", "...", "e30.e30.", "e30.bnVsbA.AA", "bnVsbA.e30.e30",
		hs256(f, object{"exp": nil}), hs256(f, object{"exp": 1e300}), hs256(f, object{"exp": -1e300}), hs256(f, object{"sub": 1}),
		eddsa(f, object{"exp": 0}), hs256(f, nil) + "\n", edit(hs256(f, nil), 0, `{"alg":"none","kid":"hs"}`),
		edit(hs256(f, nil), 0, `{"alg":"HS256","kid":["hs"]}`), edit(eddsa(f, nil), 0, `{"alg":"HS256","kid":"ed"}`),
		edit(hs256(f, nil), 1, `{"vid":"10001","sub":"u1","exp":1e999}`), edit(hs256(f, nil), 1, `[[[[`),
		sign(f, jwt.SigningMethodHS512, secret, object{"kid": "hs"}, valid(nil)),
	} {
		f.Add(seed)
	}
	v := both(f)
	f.Fuzz(func(t *testing.T, token string) {
		video, viewer, err := v.Verify(token)
		if err != nil {
			if !slices.Contains(reasonTexts, err.Error()) || video != "" || viewer != "" {
				t.Errorf("%q: got %q, %q, %v; want one of our reasons alone", token, video, viewer, err)
			}
			return
		}
		// encoding/base64 skips line ends, which says nothing else.
		if plain := strings.NewReplacer("\r", "", "\n", "").Replace(token); !good[plain] || video == "" || viewer == "" {
			t.Errorf("%q: accepted as %q, %q", token, video, viewer)
		}
	})
}
