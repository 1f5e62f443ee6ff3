package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

type playAnswer struct {
	RecordedAt int64 `json:"recorded_at"` // Unix seconds
	BeatAfter  int64 `json:"beat_after"`  // seconds
}

func (k *kind) play(w http.ResponseWriter, r *http.Request) error {
	body, err := readViewer(w, r, fieldViewerID, fieldToken, fieldResumed)
	if err != nil {
		return err
	}
	r, cancel := k.inTime(r)
	defer cancel()
	videoID := r.PathValue("video_id")
	viewerID, err := k.viewer(r, videoID, body)
	if err != nil {
		return err
	}
	record := k.Recorder.Play
	if body.resumed {
		record = k.Recorder.Resume
	}
	recordedAt, err := record(r.Context(), videoID, viewerID)
	if _, ok := errors.AsType[videoFull](err); ok {
		k.metrics.refused[full].Inc()
	}
	if err != nil {
		return err
	}
	return writeJSON(w, playAnswer{recordedAt, k.beatAfter()})
}

func (a *api) beatAfter() int64 {
	return max(int64(a.BeatAfter()/time.Second), 1)
}

func (k *kind) leave(w http.ResponseWriter, r *http.Request) error {
	body, err := readViewer(w, r, fieldViewerID, fieldRecordedAt, fieldToken)
	if err != nil {
		return err
	}
	r, cancel := k.inTime(r)
	defer cancel()
	videoID := r.PathValue("video_id")
	viewerID, err := k.viewer(r, videoID, body)
	if err != nil {
		return err
	}
	if err := k.Recorder.Leave(r.Context(), videoID, viewerID, body.recordedAt); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type viewersAnswer struct {
	VideoID string     `json:"video_id"`
	Viewers int64      `json:"viewers"`
	AsOf    *time.Time `json:"as_of"` // whole seconds, UTC; null: unknown
}

func (k *kind) viewers(w http.ResponseWriter, r *http.Request) error {
	videoID := r.PathValue("video_id")
	viewers, asOf, err := k.Lookup.Viewers(r.Context(), videoID)
	if err != nil {
		return err
	}
	k.allowCaching(w, asOf)
	return writeJSON(w, viewersAnswer{videoID, viewers, wholeSeconds(asOf)})
}

// allowCaching lets caches hold a count that is known. One that is not may be
// known a moment later.
func (a *api) allowCaching(w http.ResponseWriter, asOf time.Time) {
	if a.cacheControl != "" && !asOf.IsZero() {
		w.Header().Set("Cache-Control", a.cacheControl)
	}
}

// cacheControl is the header of an answer that may be cached, "" if none may.
func cacheControl(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return fmt.Sprintf("public, max-age=%d", int64(d/time.Second))
}

func wholeSeconds(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}
