package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxBody is the largest body of a request about one viewer, in bytes. Ids are
// far shorter, even with every character escaped.
const maxBody = 4 << 10

// maxUnix is the last second of the year 9999: milliseconds lie beyond it.
const maxUnix = 253402300799

const (
	fieldVideoID    = "video_id"
	fieldViewerID   = "viewer_id"
	fieldRecordedAt = "recorded_at"
	fieldPlays      = "plays"
	fieldToken      = "token"
	fieldResumed    = "resumed"
	fieldKind       = "kind" // also a parameter of questions
)

// viewerBody is the body of a play or a leave.
type viewerBody struct {
	viewerID   string // "": absent
	recordedAt int64  // Unix seconds; 0: absent or null
	token      string // "": absent or null
	resumed    bool
}

// readViewer reads a request's body, which may have the known fields only.
func readViewer(w http.ResponseWriter, r *http.Request, known ...string) (viewerBody, error) {
	data, err := readBody(w, r, maxBody)
	if err != nil {
		return viewerBody{}, err
	}
	return decodeViewer(data, known...)
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if !isJSON(r.Header.Get("Content-Type")) {
		return nil, newProblem(http.StatusUnsupportedMediaType, "Content-Type: must be application/json or text/plain")
	}
	var data bytes.Buffer
	data.Grow(int(bodySize(r, limit)) + bytes.MinRead) // so that it need not be copied as it grows
	_, err := data.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("body: larger than %d bytes", limit))
	}
	if err != nil {
		return nil, badRequest("body: could not be read to its end")
	}
	return data.Bytes(), nil
}

// isJSON accepts text/plain too: it is what navigator.sendBeacon can send to
// another origin without a preflight.
func isJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.TrimSpace(mediaType)
	return mediaType == "" || strings.EqualFold(mediaType, "application/json") || strings.EqualFold(mediaType, "text/plain")
}

func decodeViewer(data []byte, known ...string) (viewerBody, error) {
	if viewerID, ok := plainViewer(data); ok {
		return viewerBody{viewerID: viewerID}, nil
	}
	var body viewerBody
	err := newParser(data).object(known, func(field string, value json.Token) (err error) {
		switch field {
		case fieldViewerID:
			if body.viewerID, err = stringField(field, value); err == nil && body.viewerID == "" {
				err = errNoViewer
			}
		case fieldRecordedAt:
			body.recordedAt, err = unixField(field, value)
		case fieldToken:
			body.token, err = tokenField(field, value)
		case fieldResumed:
			body.resumed, err = boolField(field, value)
		}
		return err
	})
	return body, err
}

func stringField(field string, value json.Token) (string, error) {
	s, ok := value.(string)
	if !ok {
		return "", badRequest("%s: must be a string", field)
	}
	return s, nil
}

// tokenField takes a string, or null for none.
func tokenField(field string, value json.Token) (string, error) {
	if value == nil {
		return "", nil
	}
	return stringField(field, value)
}

// boolField takes true or false, or null for false.
func boolField(field string, value json.Token) (bool, error) {
	if value == nil {
		return false, nil
	}
	b, ok := value.(bool)
	if !ok {
		return false, badRequest("%s: must be true or false", field)
	}
	return b, nil
}

// unixField takes a whole number of seconds, not below zero, or null for 0.
func unixField(field string, value json.Token) (int64, error) {
	if value == nil {
		return 0, nil
	}
	number, _ := value.(json.Number) // any other value: the empty string, which is no number
	n, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil || n > maxUnix {
		return 0, badRequest("%s: must be a time in Unix seconds, a whole number from 0 to %d", field, int64(maxUnix))
	}
	return int64(n), nil
}

// object calls set with each field of the JSON object that the data is. It is
// stricter than json.Unmarshal, which takes names in any case, repeated names
// and trailing data, and whose replacement of bad text would make one id of
// two. Its errors are written here, as those of encoding/json quote the input.
// They count bytes from 0.
func (p parser) object(known []string, set setField) error {
	if err := checkText(p.data); err != nil {
		return err
	}
	if open, err := p.token(); err != nil {
		return err
	} else if open != json.Delim('{') {
		return badRequest("body: must be a JSON object")
	}
	if err := p.fields("", known, set); err != nil {
		return err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest("body: data after the JSON object, near byte %d", p.dec.InputOffset())
	}
	return nil
}

// setField takes a field's value: one token, which is the opening bracket of
// an object or an array.
type setField func(field string, value json.Token) error

type parser struct {
	data []byte
	dec  *json.Decoder
}

func newParser(data []byte) parser {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return parser{data, dec}
}

// fields reads an object's fields and its closing brace. place, such as
// "plays[3].", is where the object stands in the body; "" for the body itself.
func (p parser) fields(place string, known []string, set setField) error {
	var seen []string
	for p.dec.More() {
		name, err := p.token()
		if err != nil {
			return err
		}
		field, _ := name.(string)
		if !slices.Contains(known, field) {
			return badRequest("body: unknown field near byte %d; known: %s", p.dec.InputOffset(), strings.Join(known, ", "))
		}
		if slices.Contains(seen, field) {
			return badRequest("%s%s: given twice", place, field)
		}
		seen = append(seen, field)
		value, err := p.token()
		if err != nil {
			return err
		}
		if err := set(field, value); err != nil {
			return err
		}
	}
	_, err := p.token()
	return err
}

func (p parser) token() (json.Token, error) {
	token, err := p.dec.Token()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, badRequest("body: ends before its JSON object does")
	}
	if err != nil {
		return nil, badRequest("body: not JSON%s", p.faultPosition())
	}
	return token, nil
}

// faultPosition says where data stops to be JSON. The Decoder's own errors
// give the place within some tokens only roughly.
func (p parser) faultPosition() string {
	var whole json.RawMessage
	syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(p.data, &whole))
	if !ok {
		return ""
	}
	return fmt.Sprintf(" at byte %d", syntax.Offset-1)
}

// checkText refuses what encoding/json replaces silently: bytes that are not
// UTF-8, and halves of surrogate pairs.
func checkText(data []byte) error {
	if i := invalidUTF8(data); i >= 0 {
		return badRequest("body: not UTF-8 at byte %d", i)
	}
	if i := loneSurrogate(data); i >= 0 {
		return badRequest("body: half of a surrogate pair at byte %d", i)
	}
	return nil
}

// invalidUTF8 returns the index of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// loneSurrogate returns the index of the first \u escape that is half of a
// surrogate pair without the other half, or -1.
func loneSurrogate(data []byte) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		switch unit := escapedUnit(data[i:]); {
		case !utf16.IsSurrogate(unit):
			i++ // the escaped character, which may be a backslash
		case utf16.DecodeRune(unit, escapedUnit(data[i+6:])) == utf8.RuneError:
			return i
		default:
			i += 11 // to the end of the pair
		}
	}
	return -1
}

// escapedUnit returns the UTF-16 unit of the \uXXXX that data begins with, or -1.
func escapedUnit(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
