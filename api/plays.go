package api

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A batch of plays has no more than maxPlays of them, and a body of no more than
// maxPlaysBody bytes: all of them with the longest ids of plain characters.
const (
	maxPlays     = 1000
	maxPlaysBody = 1 << 20
)

// playsBody is the body of a batch of plays: the i-th of each list is of play i.
type playsBody struct {
	videoIDs, viewerIDs []string // "": absent
	blank               []bool   // the viewer's id is given, and empty
	tokens              []string // "": absent or null
	kinds               []string // of the videos; nil: none is named
}

// part is the plays at those places.
func (b playsBody) part(places []int) (part playsBody) {
	for _, i := range places {
		part.videoIDs = append(part.videoIDs, b.videoIDs[i])
		part.viewerIDs = append(part.viewerIDs, b.viewerIDs[i])
		part.blank = append(part.blank, b.blank[i])
		part.tokens = append(part.tokens, b.tokens[i])
	}
	return part
}

// readPlays reads the body of a batch of plays. kind is that of a play that names
// none; "": none may.
func readPlays(w http.ResponseWriter, r *http.Request, kind string) (playsBody, error) {
	data, err := readBody(w, r, maxPlaysBody)
	if err != nil {
		return playsBody{}, err
	}
	return decodePlays(data, kind)
}

// decodePlays reads {"plays":[{"video_id":"10001","viewer_id":"u1"},…]}. kind is as
// in readPlays.
func decodePlays(data []byte, kind string) (playsBody, error) {
	if body, ok := plainPlays(data); ok {
		return body, nil
	}
	var body playsBody
	given := false
	p := newParser(data)
	err := p.object([]string{fieldPlays}, func(_ string, value json.Token) error {
		given = true
		if value != json.Delim('[') {
			return badRequest("%s: must be an array", fieldPlays)
		}
		for p.dec.More() {
			if len(body.videoIDs) == maxPlays {
				return badRequest("%s: more than %d", fieldPlays, maxPlays)
			}
			if err := p.play(&body, kind); err != nil {
				return err
			}
		}
		_, err := p.token()
		return err
	})
	if err == nil && !given {
		err = badRequest("%s: missing", fieldPlays)
	}
	return body, err
}

// play reads the next play of a batch. That its ids are acceptable is not checked
// here: one bad play does not spoil the others.
func (p parser) play(body *playsBody, kind string) error {
	index := len(body.videoIDs)
	open, err := p.token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return badRequest("%s[%d]: must be an object", fieldPlays, index)
	}
	place := fmt.Sprintf("%s[%d].", fieldPlays, index)
	var videoID, viewerID, token string
	known, blank := []string{fieldVideoID, fieldViewerID, fieldToken}, false
	kinds := kind != ""
	if kinds {
		known = append(known, fieldKind)
	}
	err = p.fields(place, known, func(field string, value json.Token) (err error) {
		switch field {
		case fieldVideoID:
			videoID, err = stringField(place+field, value)
		case fieldViewerID:
			viewerID, err = stringField(place+field, value)
			blank = viewerID == ""
		case fieldToken:
			token, err = tokenField(place+field, value)
		case fieldKind:
			kind, err = stringField(place+field, value)
		}
		return err
	})
	body.videoIDs = append(body.videoIDs, videoID)
	body.viewerIDs = append(body.viewerIDs, viewerID)
	body.blank = append(body.blank, blank)
	body.tokens = append(body.tokens, token)
	if kinds {
		body.kinds = append(body.kinds, kind)
	}
	return err
}
