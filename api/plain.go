package api

import (
	"bytes"
	"unicode/utf8"
)

// Nearly all bodies have their fields in the documented order and no escapes in
// them. Those are read here, at a tenth of the decoder's cost. Whatever is not
// exactly so is left to the decoder, also to say what is wrong with it.

// plainText reads JSON of a known shape. Once something did not fit, nothing is
// left to read.
type plainText struct {
	rest []byte
	bad  bool
}

// plainViewer reads {"viewer_id":"u1"}.
func plainViewer(data []byte) (viewerID string, ok bool) {
	p := plainText{rest: data}
	p.mark('{')
	viewerID = p.member(fieldViewerID)
	p.mark('}')
	return viewerID, p.end() && viewerID != "" && utf8.Valid(data)
}

// plainPlays reads {"plays":[{"video_id":"10001","viewer_id":"u1"},…]}.
func plainPlays(data []byte) (body playsBody, ok bool) {
	p := plainText{rest: data}
	p.mark('{')
	p.name(fieldPlays)
	p.mark('[')
	for more := true; more && len(body.videoIDs) <= maxPlays; more = p.comma() {
		p.mark('{')
		videoID := p.member(fieldVideoID)
		p.mark(',')
		viewerID := p.member(fieldViewerID)
		p.mark('}')
		body.videoIDs, body.viewerIDs = append(body.videoIDs, videoID), append(body.viewerIDs, viewerID)
		body.blank = append(body.blank, viewerID == "")
	}
	p.mark(']')
	p.mark('}')
	body.tokens = make([]string, len(body.videoIDs))
	return body, p.end() && len(body.videoIDs) <= maxPlays && utf8.Valid(data)
}

func (p *plainText) fail() { p.rest, p.bad = nil, true }

// space skips white space.
func (p *plainText) space() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\n' || p.rest[0] == '\r' || p.rest[0] == '\t') {
		p.rest = p.rest[1:]
	}
}

// comma takes a comma if there is one.
func (p *plainText) comma() bool {
	p.space()
	rest, ok := bytes.CutPrefix(p.rest, []byte{','})
	p.rest = rest
	return ok
}

// mark takes a punctuation mark that has to be there.
func (p *plainText) mark(c byte) {
	p.space()
	if len(p.rest) == 0 || p.rest[0] != c {
		p.fail()
		return
	}
	p.rest = p.rest[1:]
}

// text takes a string without escapes.
func (p *plainText) text() []byte {
	p.mark('"')
	for i, c := range p.rest {
		switch {
		case c == '"':
			text := p.rest[:i]
			p.rest = p.rest[i+1:]
			return text
		case c == '\\' || c < ' ':
			p.fail()
			return nil
		}
	}
	p.fail()
	return nil
}

// name takes a field's name and the colon.
func (p *plainText) name(field string) {
	if string(p.text()) != field {
		p.fail()
	}
	p.mark(':')
}

// member takes a field of that name and returns its value.
func (p *plainText) member(field string) string {
	p.name(field)
	return string(p.text())
}

// end tells whether all has been read, and fitted.
func (p *plainText) end() bool {
	p.space()
	return len(p.rest) == 0 && !p.bad
}
