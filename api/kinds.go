package api

import (
	"net/http"
	"net/url"
	"strings"
)

// Kind is a kind of videos that is counted by itself, with routes of its own: "live"
// has /v1/lives/{video_id}/play. The fields are as in Options.
type Kind struct {
	Name       string
	Recorder   Recorder
	Lookup     Lookup
	Statistics Statistics
	Tokens     Tokens // takes no token for another kind's video
}

// kind answers for the videos of a Kind. Its fields hide those of the Options.
type kind struct {
	*api
	Kind
	root string // what the paths of its videos begin with
}

// allKinds are the Kinds or, where there are none, the only one.
func (a *api) allKinds() []*kind {
	if len(a.Kinds) == 0 {
		return []*kind{{a, Kind{"video", a.Recorder, a.Lookup, a.Statistics, a.Tokens}, root("video")}}
	}
	all := make([]*kind, len(a.Kinds))
	for i, k := range a.Kinds {
		all[i] = &kind{a, k, root(k.Name)}
	}
	return all
}

func root(name string) string { return "/v1/" + name + "s/" }

// site has who is on the site.
func (a *api) site() *Statistics { return &a.kinds[0].Statistics }

// ofKind serves a route of the site: for the kind that is asked for, else for the first.
func (a *api) ofKind(route func(*kind) handlerFunc) handlerFunc {
	if len(a.Kinds) == 0 {
		return route(a.kinds[0])
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		k, err := a.asked(r)
		if err != nil {
			return err
		}
		return route(k)(w, r)
	}
}

// asked is the kind that a request asks for. What else is wrong with the query is
// its handler's to say.
func (a *api) asked(r *http.Request) (*kind, error) {
	values, _ := url.ParseQuery(r.URL.RawQuery)
	if !values.Has(fieldKind) {
		return a.kinds[0], nil
	}
	return a.named(values.Get(fieldKind))
}

func (a *api) named(name string) (*kind, error) {
	names := make([]string, len(a.kinds))
	for i, k := range a.kinds {
		if k.Name == name {
			return k, nil
		}
		names[i] = k.Name
	}
	return nil, badRequest("%s: none of %s", fieldKind, strings.Join(names, ", "))
}

// defaultKind is the kind of a play that names none, "" where it must not name any.
func (a *api) defaultKind() string {
	if len(a.Kinds) == 0 {
		return ""
	}
	return a.kinds[0].Name
}

// known are the parameters of a question: those, and the kind where it is of the site.
func (k *kind) known(r *http.Request, parameters ...string) []string {
	if len(k.Kinds) > 0 && r.PathValue("video_id") == "" {
		return append(parameters, fieldKind)
	}
	return parameters
}

// The routes of statistics, each of which may be off.

func (k *kind) uniquesRoute() handlerFunc {
	return statistic(k.Statistics.Uniques != nil, "stats.uniques", k.uniques)
}

func (k *kind) playsRoute() handlerFunc {
	return statistic(k.Statistics.Plays != nil, "stats.plays", k.countPlays)
}

func (k *kind) historyRoute() handlerFunc {
	return statistic(k.Statistics.History != nil, "stats.history", k.history)
}

func (k *kind) topRoute() handlerFunc {
	return statistic(k.Statistics.Top != nil, "stats.top", k.top)
}

func (k *kind) overviewRoute() handlerFunc {
	s := k.Statistics
	return statistic(s.Peaks != nil || s.Plays != nil || s.Uniques != nil, "stats.peaks, stats.plays and stats.uniques", k.overview)
}

func (k *kind) batchRoute() handlerFunc { return k.batch }
