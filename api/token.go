package api

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// Tokens verifies play tokens.
type Tokens interface {
	// Verify returns the video and the viewer that the token was signed for,
	// neither of them empty. Its error is told to the client, so it must
	// repeat nothing of the token. One with a method Forbidden() is answered with
	// 403: the token is good, but not here. Any other is answered with 401.
	Verify(token string) (videoID, viewerID string, err error)
}

// forbidden is what a Tokens returns for a token that is good elsewhere.
type forbidden interface {
	error
	Forbidden()
}

var errNoViewer = badRequest("%s: missing or empty", fieldViewerID)

// viewer returns whom a play or a leave of the video is for: the viewer that
// the body names, where tokens are verified the one that the token was signed
// for. The body's token outweighs the header's.
func (k *kind) viewer(r *http.Request, videoID string, body viewerBody) (string, error) {
	if k.Tokens != nil {
		return claimOf(k.Tokens, cmp.Or(body.token, bearer(r))).allows(videoID, body.viewerID)
	}
	return body.named()
}

// named is the viewer whom the body names, who must be somebody.
func (b viewerBody) named() (string, error) {
	if b.viewerID == "" {
		return "", errNoViewer
	}
	return b.viewerID, nil
}

// visitor is viewer for who is on the site: a token for any video serves.
func (a *api) visitor(r *http.Request, body viewerBody) (string, error) {
	if a.Tokens == nil {
		return body.named()
	}
	c := claimOf(a.Tokens, cmp.Or(body.token, bearer(r)))
	return c.allows(c.videoID, body.viewerID)
}

// claim is what a token was signed for, or why it is none.
type claim struct {
	videoID, viewerID string
	err               error
}

func claimOf(tokens Tokens, token string) claim {
	if token == "" {
		return claim{err: newProblem(http.StatusUnauthorized, "token: missing; it goes into the header, as Authorization: Bearer, or into the body")}
	}
	videoID, viewerID, err := tokens.Verify(token)
	if _, ok := errors.AsType[forbidden](err); ok {
		return claim{err: newProblem(http.StatusForbidden, "token: "+err.Error())}
	}
	if err != nil {
		return claim{err: newProblem(http.StatusUnauthorized, "token: "+err.Error())}
	}
	return claim{videoID: videoID, viewerID: viewerID}
}

// allows returns the viewer that the token was signed for, who must be the one
// that is named unless that is empty.
func (c claim) allows(videoID, named string) (viewerID string, err error) {
	switch {
	case c.err != nil:
		return "", c.err
	case c.videoID != videoID:
		return "", newProblem(http.StatusForbidden, "token: for another video (vid)")
	case named != "" && named != c.viewerID:
		return "", newProblem(http.StatusForbidden, "token: for another viewer (sub)")
	}
	return c.viewerID, nil
}

// verified returns the plays of a batch that their tokens allow, and where each
// stands in the batch. It notes in errs why the others are not among them.
func (k *kind) verified(r *http.Request, body playsBody, errs []error) (allowed playsBody, places []int) {
	header := bearer(r)
	verify := sync.OnceValue(func() claim { return claimOf(k.Tokens, header) }) // for all plays without one of their own
	for i, videoID := range body.videoIDs {
		var c claim
		if body.tokens[i] != "" {
			c = claimOf(k.Tokens, body.tokens[i])
		} else {
			c = verify()
		}
		viewerID, err := c.allows(videoID, body.viewerIDs[i])
		if err == nil && body.blank[i] {
			err = errNoViewer
		}
		if err != nil {
			errs[i] = err
			continue
		}
		allowed.videoIDs = append(allowed.videoIDs, videoID)
		allowed.viewerIDs = append(allowed.viewerIDs, viewerID)
		places = append(places, i)
	}
	return allowed, places
}

// bearer returns the token of the Authorization header, "" without one.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
