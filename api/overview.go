package api

import (
	"net/http"
	"time"
)

// overviewAnswer is all that is known of a video, in one. What is off is null.
type overviewAnswer struct {
	VideoID    string       `json:"video_id"`
	Viewers    int64        `json:"viewers"`
	AsOf       *time.Time   `json:"as_of"`
	Peaks      *peaksAnswer `json:"peaks"`
	Plays      *int64       `json:"plays"`
	Uniques24h *int64       `json:"uniques_24h"`
}

// peaksAnswer has null where there is no peak yet.
type peaksAnswer struct {
	Today *point `json:"today"`
	Ever  *point `json:"ever"`
}

func (k *kind) overview(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	ctx, videoID, s := r.Context(), r.PathValue("video_id"), k.Statistics
	answer := overviewAnswer{VideoID: videoID}
	viewers, asOf, err := k.Lookup.Viewers(ctx, videoID)
	if err != nil {
		return err
	}
	answer.Viewers, answer.AsOf = viewers, wholeSeconds(asOf)
	if s.Peaks != nil {
		today, todayAt, ever, everAt, err := s.Peaks.Get(ctx, videoID)
		if err != nil {
			return err
		}
		answer.Peaks = &peaksAnswer{Today: peak(today, todayAt), Ever: peak(ever, everAt)}
	}
	if s.Plays != nil {
		total, _, _, err := s.Plays.Count(ctx, videoID, "day", "1d")
		if err != nil {
			return err
		}
		answer.Plays = &total
	}
	if s.Uniques != nil {
		uniques, _, _, err := s.Uniques.Count(ctx, videoID, "24h")
		if err != nil {
			return err
		}
		answer.Uniques24h = &uniques
	}
	k.allowCaching(w, asOf)
	return writeJSON(w, answer)
}

func peak(viewers int64, at time.Time) *point {
	if viewers == 0 {
		return nil
	}
	return &point{at.UTC().Truncate(time.Second), viewers}
}
