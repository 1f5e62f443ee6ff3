package console

import (
	"strings"
	"unicode"
)

// section returns the part of a page in Markdown under the heading with that
// anchor, the heading included, up to the next heading; "" if there is none.
func section(page, anchor string) string {
	var found strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if level > 0 {
			inside = anchorOf(line[level:]) == anchor
		}
		if inside {
			found.WriteString(line)
		}
	}
	return strings.TrimSpace(found.String())
}

// anchorOf is what a heading's link is called, as code hosts make it of its text.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}
