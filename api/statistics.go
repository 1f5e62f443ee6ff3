package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Statistics are what is known beside counts. Each is off where it is nil, and its
// routes answer 404. Their errors are answered like a Recorder's. Where a video id is asked for, the
// empty one stands for the site.
type Statistics struct {
	// Site records who is on the site, and Online counts them.
	Site   Site
	Online Online

	Uniques Uniques
	Plays   Plays
	Top     Top
	Peaks   Peaks
	History History
}

// Site records who is on the site, watching or not: see Recorder's Play and Leave.
type Site interface {
	Online(ctx context.Context, viewerID string) (recordedAt int64, err error)
	Offline(ctx context.Context, viewerID string, recordedAt int64) error
}

// Online counts who is on the site.
type Online interface {
	Count(ctx context.Context) (online int64, at time.Time, err error)
}

// Uniques counts the different viewers in the last hours or days: "24h", "7d".
type Uniques interface {
	Count(ctx context.Context, videoID, last string) (viewers int64, from, to time.Time, err error)
}

// Plays counts how often a video was started: in all, and in each period, "hour",
// "day", "week" or "month", of the last hours or days; from[i] is when the i-th began.
type Plays interface {
	Count(ctx context.Context, videoID, per, last string) (total int64, from []time.Time, plays []int64, err error)
}

// Top lists the videos with the most viewers; limit 0 is its default.
type Top interface {
	List(ctx context.Context, limit int) (videoIDs []string, viewers []int64, asOf time.Time, err error)
}

// Peaks are the largest counts of today and of all time; 0 is none.
type Peaks interface {
	Get(ctx context.Context, videoID string) (today int64, todayAt time.Time, ever int64, everAt time.Time, err error)
}

// History has the counts of the last hours or days, the oldest first.
type History interface {
	Points(ctx context.Context, videoID, last string) (at []time.Time, viewers []int64, err error)
}

// standardError is that of Redis's HyperLogLog, relative.
const standardError = 0.0081

// Parameters of questions.
const (
	paramLast  = "last"
	paramPer   = "per"
	paramLimit = "limit"
)

// statistic is the handler of a route, or, where it is off, one that says so.
func statistic(on bool, setting string, handle handlerFunc) handlerFunc {
	if on {
		return handle
	}
	return func(http.ResponseWriter, *http.Request) error {
		return newProblem(http.StatusNotFound, "this statistic is off: "+setting)
	}
}

// parameters reads a query that may have the known parameters only, each once.
// One that is absent is "".
func parameters(r *http.Request, known ...string) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("query: not form-encoded")
	}
	given := make(map[string]string, len(values))
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, unknownParameter(known)
		case len(all) > 1:
			return nil, badRequest("%s: given twice", name)
		case all[0] == "":
			return nil, badRequest("%s: is empty", name)
		}
		given[name] = all[0]
	}
	return given, nil
}

func unknownParameter(known []string) error {
	if len(known) == 0 {
		return badRequest("query: unknown parameter; there are none")
	}
	return badRequest("query: unknown parameter; known: %s", strings.Join(known, ", "))
}

// online says that a viewer is on the site.
func (a *api) online(w http.ResponseWriter, r *http.Request) error {
	body, err := readViewer(w, r, fieldViewerID, fieldToken)
	if err != nil {
		return err
	}
	r, cancel := a.inTime(r)
	defer cancel()
	viewerID, err := a.visitor(r, body)
	if err != nil {
		return err
	}
	recordedAt, err := a.site().Site.Online(r.Context(), viewerID)
	if err != nil {
		return err
	}
	return writeJSON(w, playAnswer{recordedAt, a.beatAfter()})
}

func (a *api) offline(w http.ResponseWriter, r *http.Request) error {
	body, err := readViewer(w, r, fieldViewerID, fieldRecordedAt, fieldToken)
	if err != nil {
		return err
	}
	r, cancel := a.inTime(r)
	defer cancel()
	viewerID, err := a.visitor(r, body)
	if err != nil {
		return err
	}
	if err := a.site().Site.Offline(r.Context(), viewerID, body.recordedAt); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type onlineAnswer struct {
	Online int64      `json:"online"`
	AsOf   *time.Time `json:"as_of"`
}

func (a *api) countOnline(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	online, at, err := a.site().Online.Count(r.Context())
	if err != nil {
		return err
	}
	a.allowCaching(w, at)
	return writeJSON(w, onlineAnswer{online, wholeSeconds(at)})
}

type uniquesAnswer struct {
	Uniques       int64     `json:"uniques"`
	From          time.Time `json:"from"`
	To            time.Time `json:"to"`
	StandardError float64   `json:"standard_error"`
}

// uniques, like those below, is of the video in the path, else of the site.
func (k *kind) uniques(w http.ResponseWriter, r *http.Request) error {
	given, err := parameters(r, k.known(r, paramLast)...)
	if err != nil {
		return err
	}
	viewers, from, to, err := k.Statistics.Uniques.Count(r.Context(), r.PathValue("video_id"), given[paramLast])
	if err != nil {
		return err
	}
	k.allowCaching(w, to)
	return writeJSON(w, uniquesAnswer{viewers, from, to.Truncate(time.Second), standardError})
}

type playsCount struct {
	Total   int64         `json:"total"`
	Periods []periodCount `json:"periods"`
}

type periodCount struct {
	From  time.Time `json:"from"`
	Plays int64     `json:"plays"`
}

func (k *kind) countPlays(w http.ResponseWriter, r *http.Request) error {
	given, err := parameters(r, k.known(r, paramPer, paramLast)...)
	if err != nil {
		return err
	}
	total, from, plays, err := k.Statistics.Plays.Count(r.Context(), r.PathValue("video_id"), given[paramPer], given[paramLast])
	if err != nil {
		return err
	}
	answer := playsCount{Total: total, Periods: make([]periodCount, len(from))}
	for i := range from {
		answer.Periods[i] = periodCount{from[i], plays[i]}
	}
	k.allowCaching(w, from[len(from)-1])
	return writeJSON(w, answer)
}

type topAnswer struct {
	Videos []countAnswer `json:"videos"`
	AsOf   *time.Time    `json:"as_of"`
}

func (k *kind) top(w http.ResponseWriter, r *http.Request) error {
	given, err := parameters(r, k.known(r, paramLimit)...)
	if err != nil {
		return err
	}
	limit := 0
	if text, ok := given[paramLimit]; ok {
		n, err := strconv.ParseUint(text, 10, 16)
		if limit = int(n); err != nil || n == 0 {
			limit = -1 // which is refused as any other bad number
		}
	}
	videoIDs, viewers, asOf, err := k.Statistics.Top.List(r.Context(), limit)
	if err != nil {
		return err
	}
	answer := topAnswer{Videos: make([]countAnswer, len(videoIDs)), AsOf: wholeSeconds(asOf)}
	for i, id := range videoIDs {
		answer.Videos[i] = countAnswer{id, viewers[i]}
	}
	k.allowCaching(w, asOf)
	return writeJSON(w, answer)
}

type historyAnswer struct {
	Points []point `json:"points"`
}

type point struct {
	At      time.Time `json:"at"`
	Viewers int64     `json:"viewers"`
}

func (k *kind) history(w http.ResponseWriter, r *http.Request) error {
	given, err := parameters(r, k.known(r, paramLast)...)
	if err != nil {
		return err
	}
	at, viewers, err := k.Statistics.History.Points(r.Context(), r.PathValue("video_id"), given[paramLast])
	if err != nil {
		return err
	}
	answer := historyAnswer{Points: make([]point, len(at))}
	for i := range at {
		answer.Points[i] = point{at[i].UTC().Truncate(time.Second), viewers[i]}
	}
	if len(at) > 0 {
		k.allowCaching(w, at[len(at)-1])
	}
	return writeJSON(w, answer)
}
