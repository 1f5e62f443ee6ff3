package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// kindToken is a play token of u1 for video 10001 of a kind, or with "" of none.
func kindToken(t *testing.T, kind string) string {
	t.Helper()
	claims := jwt.MapClaims{"vid": "10001", "sub": "u1", "exp": time.Now().Add(time.Hour).Unix()}
	if kind != "" {
		claims["kind"] = kind
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	unsigned.Header["kid"] = "shared"
	signed, err := unsigned.SignedString(tokenSecret)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A token is good for videos of its kind alone, and on the site for all.
func TestPlayTokensOfKinds(t *testing.T) {
	t.Parallel()
	film, live := redistest.Prefix(t), redistest.Prefix(t)
	s := start(t, redistest.Shared(t), "HEADCOUNT_PREFIX=video", "HEADCOUNT_KINDS="+film+","+live, "HEADCOUNT_AUTH_PLAY_KEYS="+sharedKey)
	none, ofFilm, ofLive := kindToken(t, ""), kindToken(t, film), kindToken(t, live)
	for _, step := range []struct {
		what, path, token string
		code              int
	}{
		{"film's for film", film + "s/10001/play", ofFilm, http.StatusOK},
		{"live's for live", live + "s/10001/play", ofLive, http.StatusOK},
		{"live's for film", film + "s/10001/play", ofLive, http.StatusForbidden},
		{"film's for live", live + "s/10001/play", ofFilm, http.StatusForbidden},
		{"nobody's for film", film + "s/10001/play", none, http.StatusOK},
		{"nobody's for live", live + "s/10001/play", none, http.StatusForbidden},
		{"film's for leaving live", live + "s/10001/leave", ofFilm, http.StatusForbidden},
		{"live's for the site", "online", ofLive, http.StatusOK},
	} {
		if got := programtest.Post(t, s.base+"/v1/"+step.path, `{"token":"`+step.token+`"}`); got.Code != step.code {
			t.Errorf("%s = %v, want %d", step.what, got, step.code)
		}
	}
	plays := `{"plays":[{"video_id":"10001","viewer_id":"u1","token":"` + ofLive + `"},` +
		`{"video_id":"10001","viewer_id":"u1","kind":"` + live + `","token":"` + ofLive + `"}]}`
	got := programtest.Post(t, s.base+"/v1/plays", plays).OK(t)
	if !strings.Contains(got, `"recorded":1,`) || !strings.Contains(got, `{"index":0,"detail":"token: for another kind of videos (kind)"}`) {
		t.Errorf("batch = %s, want the first play refused and the second recorded", got)
	}
}

// Each kind has metrics of its own, under the label that is not there without kinds, and the console reads those of
// one.
func TestKindsInMetrics(t *testing.T) {
	t.Parallel()
	film, live := redistest.Prefix(t), redistest.Prefix(t)
	s := start(t, redistest.Shared(t), "HEADCOUNT_PREFIX=video", "HEADCOUNT_KINDS="+film+","+live)
	programtest.Post(t, s.base+"/v1/"+live+"s/10001/play", `{"viewer_id":"u1"}`).OK(t)
	for series, want := range map[string]float64{
		`headcount_plays_total{outcome="recorded",video_kind="` + live + `"}`:                               1,
		`headcount_plays_total{outcome="recorded",video_kind="` + film + `"}`:                               0,
		`headcount_record_duration_seconds_count{kind="play",video_kind="` + live + `"}`:                    1,
		`headcount_http_requests_total{code="200",method="POST",route="/v1/` + live + `s/{video_id}/play"}`: 1,
		`headcount_record_queue_limit{video_kind="` + film + `"}`:                                           programtest.Metric(t, s.admin, `headcount_record_queue_limit{video_kind="`+live+`"}`),
	} {
		if got := programtest.Metric(t, s.admin, series); got != want {
			t.Errorf("%s = %v, want %v", series, got, want)
		}
	}
	data := programtest.Get(t, s.admin+"/console/data?kind="+live).OK(t)
	if !strings.Contains(data, `"queue":{"length":0,"limit":`) || strings.Contains(data, `"limit":0}`) {
		t.Errorf("console = %s, want the queue of the kind", data)
	}
}

// One kind that is listed is a kind like others, but there is nothing to tell it from.
func TestOneKind(t *testing.T) {
	t.Parallel()
	live := redistest.Prefix(t)
	s := start(t, redistest.Shared(t), "HEADCOUNT_PREFIX=video", "HEADCOUNT_KINDS="+live)
	programtest.Post(t, s.base+"/v1/"+live+"s/10001/play", `{"viewer_id":"u1"}`).OK(t)
	programtest.Get(t, s.base+"/v1/plays?kind="+live).OK(t)
	if got := programtest.Post(t, s.video("10001", "play"), `{"viewer_id":"u1"}`); got.Code != http.StatusNotFound {
		t.Errorf("play of a video = %v, want 404", got)
	}
	if got := programtest.Metric(t, s.admin, `headcount_plays_total{outcome="recorded"}`); got != 1 {
		t.Errorf("plays = %v, want 1 without a label", got)
	}
}
