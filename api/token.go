package api

import (
	"cmp"
	"net/http"
	"strings"
)

// Tokens verifies play tokens.
type Tokens interface {
	// Verify returns the video and the viewer that the token was signed for,
	// neither of them empty. Its error is told to the client, so it must
	// repeat nothing of the token.
	Verify(token string) (videoID, viewerID string, err error)
}

var errNoViewer = badRequest("%s: missing or empty", fieldViewerID)

// viewer returns whom a play or a leave of the video is for: the viewer that
// the body names, where tokens are verified the one that the token was signed
// for. The body's token outweighs the header's.
func (a *api) viewer(r *http.Request, videoID string, body viewerBody) (string, error) {
	if a.Tokens != nil {
		return a.verify(cmp.Or(body.token, bearer(r)), videoID, body.viewerID)
	}
	if body.viewerID == "" {
		return "", errNoViewer
	}
	return body.viewerID, nil
}

// verify returns the viewer that the token was signed for, who must be the one
// that is claimed unless that is empty.
func (a *api) verify(token, videoID, claimed string) (viewerID string, err error) {
	if token == "" {
		return "", newProblem(http.StatusUnauthorized, "token: missing; it goes into the header, as Authorization: Bearer, or into the body")
	}
	signedVideo, signedViewer, err := a.Tokens.Verify(token)
	switch {
	case err != nil:
		return "", newProblem(http.StatusUnauthorized, "token: "+err.Error())
	case signedVideo != videoID:
		return "", newProblem(http.StatusForbidden, "token: for another video (vid)")
	case claimed != "" && claimed != signedViewer:
		return "", newProblem(http.StatusForbidden, "token: for another viewer (sub)")
	}
	return signedViewer, nil
}

// verified returns the plays of a batch that their tokens allow, and where each
// stands in the batch. It notes in errs why the others are not among them.
func (a *api) verified(r *http.Request, body playsBody, errs []error) (allowed playsBody, places []int) {
	header := bearer(r)
	for i, videoID := range body.videoIDs {
		viewerID, err := a.verify(cmp.Or(body.tokens[i], header), videoID, body.viewerIDs[i])
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
