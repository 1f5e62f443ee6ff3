package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// answer is what became of one request.
type answer struct {
	sent   time.Time
	took   time.Duration
	code   int // 0: there was no answer
	body   []byte
	header http.Header
	last   bool // its connection ends with it
	err    error
}

// client sends plays and leaves to a balancer's recorders, and notes each in the ledger. It keeps its connections. It
// is safe for concurrent use.
type client struct {
	http   *http.Client
	ledger *ledger

	mu    sync.Mutex
	tally tally
}

// tally is what a client was answered.
type tally struct {
	codes   map[int]int   // answers by status; 0: requests without an answer
	slowest time.Duration // answer
}

// clientTimeout is longer than any answer may take, so that one which comes too late is seen.
const clientTimeout = 15 * time.Second

func newClient(l *ledger) *client {
	return &client{
		http:   &http.Client{Timeout: clientTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
		ledger: l,
		tally:  tally{codes: make(map[int]int)},
	}
}

// close ends the idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// totals are a copy of the tally.
func (c *client) totals() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := tally{codes: make(map[int]int, len(c.tally.codes)), slowest: c.tally.slowest}
	for code, n := range c.tally.codes {
		t.codes[code] = n
	}
	return t
}

// play sends one play. recordedAt is 0 unless it was acknowledged.
func (c *client) play(ctx context.Context, base string, v viewing) (recordedAt int64, a answer) {
	sent := c.ledger.send(0, false, v)
	a = c.post(ctx, base+videoPath(v.video)+"/play", map[string]any{"viewer_id": v.viewer})
	recordedAt = a.recordedAt()
	c.ledger.settle(sent[0], a.outcome(), recordedAt, true)
	return recordedAt, a
}

// leave sends a leave with recordedAt as its guard, 0 for none.
func (c *client) leave(ctx context.Context, base string, v viewing, recordedAt int64) answer {
	sent := c.ledger.send(recordedAt, true, v)
	body := map[string]any{"viewer_id": v.viewer}
	if recordedAt > 0 {
		body["recorded_at"] = recordedAt
	}
	a := c.post(ctx, base+videoPath(v.video)+"/leave", body)
	c.ledger.settle(sent[0], a.outcome(), 0, true)
	return a
}

// playAll sends plays in one request.
func (c *client) playAll(ctx context.Context, base string, viewings []viewing) (recordedAt int64, a answer) {
	return c.playBody(ctx, base, viewings, playsBody(viewings))
}

// playsBody is the body of a request with these plays.
func playsBody(viewings []viewing) []byte {
	plays := make([]map[string]string, len(viewings))
	for i, v := range viewings {
		plays[i] = map[string]string{"video_id": v.video, "viewer_id": v.viewer}
	}
	body, err := json.Marshal(map[string]any{"plays": plays})
	if err != nil {
		panic(err) // strings are always JSON
	}
	return body
}

// playBody sends what playsBody made of these plays.
func (c *client) playBody(ctx context.Context, base string, viewings []viewing, body []byte) (recordedAt int64, a answer) {
	sent := c.ledger.send(0, false, viewings...)
	a = c.do(ctx, http.MethodPost, base+"/v1/plays", body)
	recordedAt = a.recordedAt()
	failed := a.failedPlays()
	for i, e := range sent {
		o := a.outcome()
		if failed[i] {
			o = unknown
		}
		c.ledger.settle(e, o, recordedAt, len(sent) == 1)
	}
	return recordedAt, a
}

// online sends a heartbeat. recordedAt is 0 unless it was acknowledged.
func (c *client) online(ctx context.Context, base, viewer string) (recordedAt int64, a answer) {
	sent := c.ledger.sendSite(0, false, viewer)
	a = c.post(ctx, base+"/v1/online", map[string]any{"viewer_id": viewer})
	recordedAt = a.recordedAt()
	c.ledger.settle(sent, a.outcome(), recordedAt, true)
	return recordedAt, a
}

// offline sends a leave of the site with recordedAt as its guard, 0 for none.
func (c *client) offline(ctx context.Context, base, viewer string, recordedAt int64) answer {
	sent := c.ledger.sendSite(recordedAt, true, viewer)
	body := map[string]any{"viewer_id": viewer}
	if recordedAt > 0 {
		body["recorded_at"] = recordedAt
	}
	a := c.post(ctx, base+"/v1/online/leave", body)
	c.ledger.settle(sent, a.outcome(), 0, true)
	return a
}

// get asks for what changes nothing; path begins with a slash.
func (c *client) get(ctx context.Context, base, path string) answer {
	return c.do(ctx, http.MethodGet, base+path, nil)
}

func (c *client) post(ctx context.Context, url string, body any) answer {
	text, err := json.Marshal(body)
	if err != nil {
		return answer{err: err}
	}
	return c.do(ctx, http.MethodPost, url, text)
}

func (c *client) do(ctx context.Context, method, url string, body []byte) answer {
	a := answer{sent: time.Now()}
	a.read(ctx, c.http, method, url, body)
	a.took = time.Since(a.sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.codes[a.code]++
	if a.code != 0 {
		c.tally.slowest = max(c.tally.slowest, a.took)
	}
	return a
}

func (a *answer) read(ctx context.Context, h *http.Client, method, url string, body []byte) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		a.err = err
		return
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := h.Do(req)
	if err != nil {
		a.err = err
		return
	}
	defer func() { _ = res.Body.Close() }()
	if a.body, a.err = io.ReadAll(res.Body); a.err == nil {
		a.code, a.header, a.last = res.StatusCode, res.Header, res.Close
	}
}

// outcome is what a play's or leave's answer says of it. A 503 leaves it open: it may have been recorded all the same.
func (a answer) outcome() outcome {
	switch {
	case a.code == http.StatusOK, a.code == http.StatusNoContent:
		return acknowledged
	case a.code >= 400 && a.code < 500:
		return refused
	}
	return unknown
}

func (a answer) recordedAt() int64 {
	var body struct {
		RecordedAt int64 `json:"recorded_at"`
	}
	if a.code != http.StatusOK || json.Unmarshal(a.body, &body) != nil {
		return 0
	}
	return body.RecordedAt
}

// failedPlays are the places of a batch's plays that were not recorded, as far as the answer says so.
func (a answer) failedPlays() map[int]bool {
	var body struct {
		Errors []struct {
			Index int `json:"index"`
		} `json:"errors"`
	}
	if a.code != http.StatusOK || json.Unmarshal(a.body, &body) != nil {
		return nil
	}
	failed := make(map[int]bool)
	for _, e := range body.Errors {
		failed[e.Index] = true
	}
	return failed
}

func (a answer) String() string {
	if a.err != nil {
		return fmt.Sprintf("after %s: %v", a.took.Round(time.Millisecond), a.err)
	}
	return fmt.Sprintf("after %s: %d %s", a.took.Round(time.Millisecond), a.code, bytes.TrimSpace(a.body))
}

func videoPath(video string) string { return "/v1/videos/" + url.PathEscape(video) }
