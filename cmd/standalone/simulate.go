package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// maxSimulated bounds what the embedded Redis is asked to do.
const maxSimulated = 20_000

// announce tells the user what to try as soon as the public listener is up, and
// its base URL to the simulation.
func announce(stdout io.Writer, public chan<- string) func(string, net.Addr) {
	return func(listener string, addr net.Addr) {
		if listener != "public" {
			return
		}
		_, port, _ := net.SplitHostPort(addr.String()) // a listener's own address
		base := "http://127.0.0.1:" + port
		_, _ = fmt.Fprintf(stdout, `
Open %[1]s/ in a browser, or try it from another terminal:

  curl --json '{"viewer_id":"you"}' %[1]s/v1/videos/10001/play
  curl %[1]s/v1/videos/10001/viewers
  curl --json '{"viewer_id":"you"}' %[1]s/v1/videos/10001/leave

`, base)
		public <- base
	}
}

// simulate lets viewers come and go until ctx ends. They are players like any
// other: all they know is the HTTP API.
func simulate(ctx context.Context, log *zap.Logger, public <-chan string, viewers int) error {
	if viewers == 0 {
		return nil
	}
	var base string
	select {
	case base = <-public:
	case <-ctx.Done():
		return nil
	}
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64},
	}
	defer client.CloseIdleConnections()
	log.Info("simulating", zap.Int("viewers", viewers))
	var running sync.WaitGroup
	for i := range viewers {
		v := viewer{client: client, base: base, id: fmt.Sprintf("simulated-%d", i+1)}
		running.Go(func() { v.live(ctx) })
	}
	running.Wait()
	return nil
}

// viewer is one simulated viewer.
type viewer struct {
	client   *http.Client
	base, id string
}

// live watches one video after another, with pauses between.
func (v viewer) live(ctx context.Context) {
	for pause(ctx, upTo(30*time.Second)) {
		v.watch(ctx, fmt.Sprint(10001+min(rand.IntN(5), rand.IntN(5)))) // some videos are more popular
	}
}

// watch plays a video for a while, beats as the server says, and then leaves,
// or one time in five just vanishes as a closed laptop does.
func (v viewer) watch(ctx context.Context, videoID string) {
	until := time.Now().Add(10*time.Second + upTo(80*time.Second))
	for {
		beat, ok := v.play(ctx, videoID)
		left := time.Until(until)
		if !ok || !pause(ctx, min(beat, left)) {
			return
		}
		if left <= beat {
			break
		}
	}
	if rand.IntN(5) > 0 {
		v.post(ctx, videoID, "leave", nil)
	}
}

func (v viewer) play(ctx context.Context, videoID string) (beat time.Duration, ok bool) {
	var answer struct {
		BeatAfter int64 `json:"beat_after"`
	}
	ok = v.post(ctx, videoID, "play", &answer)
	return time.Duration(answer.BeatAfter) * time.Second, ok
}

// post tells the recorder, and whether that worked; a player shrugs at errors.
func (v viewer) post(ctx context.Context, videoID, what string, answer any) bool {
	body, err := json.Marshal(map[string]string{"viewer_id": v.id})
	if err != nil {
		return false
	}
	url := v.base + "/v1/videos/" + videoID + "/" + what
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := v.client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	if answer != nil {
		err = json.NewDecoder(res.Body).Decode(answer)
	}
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
	return err == nil && res.StatusCode < http.StatusBadRequest
}

func upTo(d time.Duration) time.Duration { return rand.N(d) }

// pause waits for d, and tells whether ctx is still going on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
