package keys

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxIDBytes is the longest video or viewer id, in bytes of UTF-8.
const MaxIDBytes = 256

// IDError says which id is not acceptable and why. It never holds the id.
type IDError struct {
	Field  string // "video_id" or "viewer_id"
	Reason string
}

func (e *IDError) Error() string { return e.Field + ": " + e.Reason }

// BadInput marks the error as the caller's fault, so that it can be answered
// with a 400.
func (e *IDError) BadInput() (field, reason string) { return e.Field, e.Reason }

// AtIndex is err with the place of the id in a list, such as "video_id[3]", if
// it is an *IDError.
func AtIndex(err error, i int) error {
	var bad *IDError
	if !errors.As(err, &bad) {
		return err
	}
	return &IDError{fmt.Sprintf("%s[%d]", bad.Field, i), bad.Reason}
}

// CheckVideoID returns an *IDError unless id is 1 to 256 bytes of valid UTF-8
// without control characters that does not begin with the reserved prefix.
func CheckVideoID(id string) error {
	const field = "video_id"
	if strings.HasPrefix(id, ReservedPrefix) {
		return &IDError{field, fmt.Sprintf("must not begin with %q, which is reserved for count keys", ReservedPrefix)}
	}
	return checkID(field, id)
}

// CheckViewerID returns an *IDError unless id is 1 to 256 bytes of valid UTF-8
// without control characters.
func CheckViewerID(id string) error { return checkID("viewer_id", id) }

func checkID(field, id string) error {
	switch {
	case id == "":
		return &IDError{field, fmt.Sprintf("is missing; it takes 1 to %d bytes", MaxIDBytes)}
	case len(id) > MaxIDBytes:
		return &IDError{field, fmt.Sprintf("has %d bytes; it takes 1 to %d", len(id), MaxIDBytes)}
	case !utf8.ValidString(id):
		return &IDError{field, "is not valid UTF-8"}
	case strings.ContainsFunc(id, unicode.IsControl):
		return &IDError{field, "has a control character"}
	}
	return nil
}
