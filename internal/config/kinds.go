package config

import (
	"regexp"
	"slices"
)

// mostKinds keeps what a worker remembers from pass to pass, for each of them, within a small process.
const mostKinds = 8

// kindName is what reads well in a key and in a path alike.
var kindName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// takenKinds are those whose routes, such as /v1/plays/10001/play, would lie below a route of the site.
var takenKinds = []string{"play", "unique", "viewer"}

func (r *report) kinds(key string, names []string) {
	if len(names) > mostKinds {
		r.refuse(key, "has %d, more than %d", len(names), mostKinds)
		return
	}
	for i, name := range names {
		switch {
		case !kindName.MatchString(name):
			r.refuse(key, "%s is not a name such as live: a letter, then up to 31 letters, digits and underscores, all small", quote(name))
		case slices.Contains(names[:i], name):
			r.refuse(key, "%s is given twice", quote(name))
		case slices.Contains(takenKinds, name):
			r.refuse(key, "%s would have routes below /v1/%ss, which is one of the site", quote(name), name)
		}
	}
}
