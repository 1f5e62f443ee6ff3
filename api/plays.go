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
}

// readPlays reads the body of a batch of plays.
func readPlays(w http.ResponseWriter, r *http.Request) (playsBody, error) {
	data, err := readBody(w, r, maxPlaysBody)
	if err != nil {
		return playsBody{}, err
	}
	return decodePlays(data)
}

// decodePlays reads {"plays":[{"video_id":"10001","viewer_id":"u1"},…]}.
func decodePlays(data []byte) (playsBody, error) {
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
			if err := p.play(&body); err != nil {
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
func (p parser) play(body *playsBody) error {
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
	blank := false
	err = p.fields(place, []string{fieldVideoID, fieldViewerID, fieldToken}, func(field string, value json.Token) (err error) {
		switch field {
		case fieldVideoID:
			videoID, err = stringField(place+field, value)
		case fieldViewerID:
			viewerID, err = stringField(place+field, value)
			blank = viewerID == ""
		case fieldToken:
			token, err = tokenField(place+field, value)
		}
		return err
	})
	body.videoIDs = append(body.videoIDs, videoID)
	body.viewerIDs = append(body.viewerIDs, viewerID)
	body.blank = append(body.blank, blank)
	body.tokens = append(body.tokens, token)
	return err
}
