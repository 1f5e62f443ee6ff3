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

func (a *api) play(w http.ResponseWriter, r *http.Request) error {
	body, err := readViewer(w, r, fieldViewerID, fieldToken)
	if err != nil {
		return err
	}
	r, cancel := a.inTime(r)
	defer cancel()
	videoID := r.PathValue("video_id")
	viewerID, err := a.viewer(r, videoID, body)
	if err != nil {
		return err
	}
	recordedAt, err := a.Recorder.Play(r.Context(), videoID, viewerID)
	if _, ok := errors.AsType[videoFull](err); ok {
		a.metrics.refused[full].Inc()
	}
	if err != nil {
		return err
	}
	return writeJSON(w, playAnswer{recordedAt, a.beatAfter()})
}

func (a *api) beatAfter() int64 {
	return max(int64(a.BeatAfter()/time.Second), 1)
}

func (a *api) leave(w http.ResponseWriter, r *http.Request) error {
	body, err := readViewer(w, r, fieldViewerID, fieldRecordedAt, fieldToken)
	if err != nil {
		return err
	}
	r, cancel := a.inTime(r)
	defer cancel()
	videoID := r.PathValue("video_id")
	viewerID, err := a.viewer(r, videoID, body)
	if err != nil {
		return err
	}
	if err := a.Recorder.Leave(r.Context(), videoID, viewerID, body.recordedAt); err != nil {
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

func (a *api) viewers(w http.ResponseWriter, r *http.Request) error {
	videoID := r.PathValue("video_id")
	viewers, asOf, err := a.Lookup.Viewers(r.Context(), videoID)
	if err != nil {
		return err
	}
	a.allowCaching(w, asOf)
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
