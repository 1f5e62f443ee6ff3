package api

import (
	"net/http"
	"net/url"
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

// playAll records the plays of a batch that their tokens allow, without Tokens
// all. The i-th error is nil where that play was recorded.
func (a *api) playAll(r *http.Request, body playsBody) (recordedAt int64, errs []error) {
	if a.Tokens == nil {
		return a.Recorder.PlayAll(r.Context(), body.videoIDs, body.viewerIDs)
	}
	errs = make([]error, len(body.videoIDs))
	allowed, places := a.verified(r, body, errs)
	recordedAt, failed := a.Recorder.PlayAll(r.Context(), allowed.videoIDs, allowed.viewerIDs)
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

func (a *api) batch(w http.ResponseWriter, r *http.Request) error {
	videoIDs, err := batchIDs(r.URL.RawQuery)
	if err != nil {
		return err
	}
	viewers, asOf, err := a.Lookup.Batch(r.Context(), videoIDs)
	if err != nil {
		return err
	}
	answer := batchAnswer{Counts: make([]countAnswer, len(videoIDs)), AsOf: wholeSeconds(asOf)}
	for i, id := range videoIDs {
		answer.Counts[i] = countAnswer{id, viewers[i]}
	}
	a.allowCaching(w, asOf)
	return writeJSON(w, answer)
}

// batchIDs reads video_id=10001&video_id=10002&…
func batchIDs(query string) ([]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, badRequest("query: not form-encoded; write an id's special characters as %%XX")
	}
	ids := values[fieldVideoID]
	switch {
	case len(values) > 1, len(values) == 1 && len(ids) == 0:
		return nil, badRequest("query: unknown parameter; known: %s", fieldVideoID)
	case len(ids) == 0:
		return nil, badRequest("%s: missing; give it once for each video", fieldVideoID)
	case len(ids) > maxBatch:
		return nil, badRequest("%s: %d given; one request takes up to %d", fieldVideoID, len(ids), maxBatch)
	}
	return ids, nil
}
