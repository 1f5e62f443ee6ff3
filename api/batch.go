package api

import (
	"net/http"
	"net/url"
	"slices"
	"time"
)

// maxBatches is how many batches of plays may be recorded at a time. So many fill
// a recorder's queue several times over; more would only fill the memory. A batch
// counts once it has been read, so that slow clients keep nobody out; when there
// are so many already, the next is refused unread, as reading takes the time that
// recording needs.
const maxBatches = 64

var errTooManyBatches = unavailable("too many batches at a time, try again")

// maxBatch is how many videos one lookup may ask for.
const maxBatch = 200

type playsAnswer struct {
	Recorded   int         `json:"recorded"`
	RecordedAt int64       `json:"recorded_at"` // Unix seconds, of the last one
	BeatAfter  int64       `json:"beat_after"`  // seconds
	Errors     []playError `json:"errors"`
}

// playError is a play of a batch that was not recorded.
type playError struct {
	Index  int    `json:"index"`
	Detail string `json:"detail"`
}

// plays records a batch. Its answer is 503 only if all that could be recorded
// were not: players would send those again that are recorded already.
func (a *api) plays(w http.ResponseWriter, r *http.Request) error {
	if len(a.batches) == maxBatches {
		return errTooManyBatches
	}
	body, err := a.takePlays(w, r)
	if err != nil {
		return err
	}
	select {
	case a.batches <- struct{}{}:
		defer func() { <-a.batches }()
	default:
		return errTooManyBatches
	}
	r, cancel := a.inTime(r)
	defer cancel()
	recordedAt, errs := a.playAll(r, body)
	answer := playsAnswer{RecordedAt: recordedAt, BeatAfter: a.beatAfter(), Errors: []playError{}}
	var failed error
	for i, err := range errs {
		if err == nil {
			answer.Recorded++
			continue
		}
		p := a.problemFor(err)
		switch p.Status {
		case http.StatusServiceUnavailable:
			failed = err
		case http.StatusTooManyRequests:
			a.metrics.refused[full].Inc()
		}
		answer.Errors = append(answer.Errors, playError{i, p.Detail})
	}
	if failed != nil && answer.Recorded == 0 {
		return failed
	}
	return writeJSON(w, answer)
}

// playAll records the plays of a batch, each by its kind. The i-th error is nil
// where that play was recorded.
func (a *api) playAll(r *http.Request, body playsBody) (recordedAt int64, errs []error) {
	if body.kinds == nil {
		return a.kinds[0].playAll(r, body)
	}
	errs = make([]error, len(body.videoIDs))
	places := make(map[*kind][]int, len(a.kinds))
	for i, name := range body.kinds {
		k, err := a.named(name)
		if errs[i] = err; err == nil {
			places[k] = append(places[k], i)
		}
	}
	for _, k := range a.kinds {
		at, failed := k.playAll(r, body.part(places[k]))
		recordedAt = max(recordedAt, at)
		for i, place := range places[k] {
			errs[place] = failed[i]
		}
	}
	return recordedAt, errs
}

// playAll records the plays of a batch, all of the kind, that their tokens allow,
// without Tokens all.
func (k *kind) playAll(r *http.Request, body playsBody) (recordedAt int64, errs []error) {
	if k.Tokens == nil {
		return k.Recorder.PlayAll(r.Context(), body.videoIDs, body.viewerIDs)
	}
	errs = make([]error, len(body.videoIDs))
	allowed, places := k.verified(r, body, errs)
	recordedAt, failed := k.Recorder.PlayAll(r.Context(), allowed.videoIDs, allowed.viewerIDs)
	for i, place := range places {
		errs[place] = failed[i]
	}
	return recordedAt, errs
}

type batchAnswer struct {
	Counts []countAnswer `json:"counts"`
	AsOf   *time.Time    `json:"as_of"` // whole seconds, UTC; null: unknown
}

type countAnswer struct {
	VideoID string `json:"video_id"`
	Viewers int64  `json:"viewers"`
}

func (k *kind) batch(w http.ResponseWriter, r *http.Request) error {
	videoIDs, err := k.batchIDs(r)
	if err != nil {
		return err
	}
	viewers, asOf, err := k.Lookup.Batch(r.Context(), videoIDs)
	if err != nil {
		return err
	}
	answer := batchAnswer{Counts: make([]countAnswer, len(videoIDs)), AsOf: wholeSeconds(asOf)}
	for i, id := range videoIDs {
		answer.Counts[i] = countAnswer{id, viewers[i]}
	}
	k.allowCaching(w, asOf)
	return writeJSON(w, answer)
}

// batchIDs reads video_id=10001&video_id=10002&…
func (k *kind) batchIDs(r *http.Request) ([]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("query: not form-encoded; write an id's special characters as %%XX")
	}
	ids, known := values[fieldVideoID], k.known(r, fieldVideoID)
	for name := range values {
		if !slices.Contains(known, name) {
			return nil, unknownParameter(known)
		}
	}
	switch {
	case len(values[fieldKind]) > 1:
		return nil, badRequest("%s: given twice", fieldKind)
	case len(ids) == 0:
		return nil, badRequest("%s: missing; give it once for each video", fieldVideoID)
	case len(ids) > maxBatch:
		return nil, badRequest("%s: %d given; one request takes up to %d", fieldVideoID, len(ids), maxBatch)
	}
	return ids, nil
}
