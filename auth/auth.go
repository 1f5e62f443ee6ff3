// Package auth verifies play tokens: JWTs with which a site's backend says
// which viewer may play and leave which video, until when.
//
// A token names its key by kid, so that keys can be exchanged while tokens of
// the old and of the new one are in use. The key alone decides how a signature
// is checked: with a token's word for it, anybody could sign with a public key
// as if it were a shared secret.
//
// Whether a token has expired is told by the process's own clock, unlike
// everything that is counted: the site's backend, which wrote the time, has
// none in common with Redis either.
package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// leeway is how far the clocks of the backend and of this process may differ.
const leeway = 30 * time.Second

// maxToken is the largest token in bytes. One with ids of 256 bytes, each
// character escaped, has about 2.5 KiB.
const maxToken = 4 << 10

// maxExpiry is the last second of the year 9999: milliseconds lie beyond it,
// and a token that expires in them would never expire.
const maxExpiry = 253402300799

// Why a token is refused. The texts are for whoever signs tokens, and repeat
// nothing of the token.
var (
	errTooLarge   = fmt.Errorf("larger than %d bytes", maxToken)
	errMalformed  = errors.New("not a JWT whose claims have the right types")
	errUnknownKey = errors.New("its header names no key that is known here (kid)")
	errAlgorithm  = errors.New("its header names another algorithm than the key's (alg)")
	errCritical   = errors.New("its header demands an extension that is not known here (crit)")
	errSignature  = errors.New("its signature is not that of the key it names")
	errExpired    = errors.New("expired (exp)")
	errNotYet     = errors.New("not valid yet (nbf)")
	errIncomplete = errors.New("lacks one of the claims exp, vid and sub")
	errExpiry     = errors.New("does not expire before the year 10000; exp is in seconds")
	errKind       = otherKind{errors.New("for another kind of videos (kind)")}
)

// otherKind is why a token is refused that is good elsewhere.
type otherKind struct{ error }

// Forbidden tells it from what makes a token none.
func (otherKind) Forbidden() {}

// reasons word the library's errors, whose own texts are not for strangers.
// The first that fits counts.
var reasons = []struct{ cause, reason error }{
	{errUnknownKey, errUnknownKey},
	{errAlgorithm, errAlgorithm},
	{errCritical, errCritical},
	{jwt.ErrTokenMalformed, errMalformed},
	{jwt.ErrSignatureInvalid, errSignature},
	{jwt.ErrEd25519Verification, errSignature},
	{jwt.ErrTokenSignatureInvalid, errAlgorithm}, // by an algorithm that no key has, such as none
	{jwt.ErrTokenUnverifiable, errAlgorithm},     // by one that the library does not have
	{jwt.ErrTokenRequiredClaimMissing, errIncomplete},
	{errExpiry, errExpiry},
	{jwt.ErrTokenExpired, errExpired},
	{jwt.ErrTokenNotValidYet, errNotYet},
}

// Options are what New builds from.
type Options struct {
	// Keys are the keys that tokens may be signed with. Without one, every
	// token is refused.
	Keys *Keys

	// Kind is the kind of videos that tokens must be for, which they name by the
	// claim kind. "": any, and nobody looks at the claim.
	Kind string

	// DefaultKind is what a token is for that names no kind. "": no Kind's videos.
	DefaultKind string

	// Now tells the time, for exp and nbf. Nil: time.Now.
	Now func() time.Time
}

// Verifier verifies play tokens. It is safe for concurrent use.
type Verifier struct {
	o      Options
	parser *jwt.Parser
}

// New returns a Verifier. The keys must not change any more.
func New(o Options) *Verifier {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{o, jwt.NewParser(
		jwt.WithValidMethods([]string{algHS256, algEdDSA}),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(leeway),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(o.Now),
	)}
}

// Verify returns the video and the viewer that the token was signed for,
// neither of them empty. Its error says what is wrong in words for whoever
// signs tokens, and repeats nothing of the token. It has a method Forbidden() if
// the token is good, but for another kind's videos.
func (v *Verifier) Verify(token string) (videoID, viewerID string, err error) {
	if len(token) > maxToken {
		return "", "", errTooLarge
	}
	var c claims
	if _, err := v.parser.ParseWithClaims(token, &c, v.keyOf); err != nil {
		return "", "", reasonFor(err)
	}
	if v.o.Kind != "" && c.kind(v.o.DefaultKind) != v.o.Kind {
		return "", "", errKind
	}
	return c.VideoID, c.Subject, nil
}

// keyOf returns the key that a token is to be verified with.
func (v *Verifier) keyOf(token *jwt.Token) (any, error) {
	id, _ := token.Header["kid"].(string)
	k, known := v.o.Keys.byID[id]
	_, critical := token.Header["crit"]
	switch {
	case !known:
		return nil, errUnknownKey
	case token.Method.Alg() != k.alg:
		return nil, errAlgorithm
	case critical: // RFC 7515 wants it refused, the library does not look at it
		return nil, errCritical
	}
	return k.verify, nil
}

func reasonFor(err error) error {
	for _, r := range reasons {
		if errors.Is(err, r.cause) {
			return r.reason
		}
	}
	return errMalformed
}

// claims are those of a play token; others are ignored.
type claims struct {
	VideoID string `json:"vid"`
	Kind    any    `json:"kind"` // anything is well where it is not looked at
	jwt.RegisteredClaims
}

// kind is what the token names, if anything. What is no text is no kind.
func (c *claims) kind(otherwise string) string {
	if c.Kind == nil {
		return otherwise
	}
	name, _ := c.Kind.(string)
	return name
}

// Validate is called once the signature was verified, and besides the checks
// of exp and nbf.
func (c *claims) Validate() error {
	switch {
	case c.VideoID == "" || c.Subject == "":
		return jwt.ErrTokenRequiredClaimMissing
	case c.ExpiresAt != nil && c.ExpiresAt.Unix() > maxExpiry:
		return errExpiry
	}
	return nil
}
