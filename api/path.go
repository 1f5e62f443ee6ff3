package api

import (
	"net/http"
	"slices"
	"strings"
)

// exactPath lets pass only the paths that ServeMux takes as they are. Others
// it would clean and redirect, so that an id is lost or becomes another.
func (a *api) exactPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch escaped := r.URL.EscapedPath(); {
		case a.lacksVideoID(escaped):
			newProblem(http.StatusBadRequest, "video_id: must not be empty, nor . or .. unless sent as %2E or %2E%2E").write(w)
		case !isClean(escaped) || lostSlash(r.URL.RawPath, escaped):
			notFound(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (a *api) lacksVideoID(escaped string) bool {
	return slices.ContainsFunc(a.kinds, func(k *kind) bool {
		rest, ok := strings.CutPrefix(escaped, k.root)
		id, _, more := strings.Cut(rest, "/")
		return ok && more && isCleanedAway(id)
	})
}

// isClean reports whether the path starts with a slash and has no segment that
// is cleaned away. One slash at the end is clean.
func isClean(escaped string) bool {
	rest, ok := strings.CutPrefix(escaped, "/")
	for ok && rest != "" {
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		ok = !isCleanedAway(segment)
	}
	return ok
}

func isCleanedAway(segment string) bool {
	return segment == "" || segment == "." || segment == ".."
}

// lostSlash reports whether an escaped slash of the path as it was sent has
// become a plain one. EscapedPath does that to a path where some other byte
// should have been escaped and was not.
func lostSlash(raw, escaped string) bool {
	return raw != "" && strings.Count(raw, "/") != strings.Count(escaped, "/")
}
