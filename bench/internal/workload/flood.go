package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/bench/internal/dataset"
	"headcount/bench/internal/server"
	"headcount/internal/keys"
)

// flood sends batches of plays, each play by a viewer of its own, and
// remembers what became of each batch.
type flood struct {
	url    string
	set    dataset.Set
	client *http.Client

	mu      sync.Mutex
	sent    int // batches
	answers []answer
}

// answer is what a batch got: 200, 503, or an error, which is neither.
type answer struct {
	batch int // its number
	err   error
	took  time.Duration
	receipt
}

// receipt says which plays of a batch were recorded, by the server's word.
type receipt struct {
	Recorded int
	Errors   []struct{ Index int } // of those that were not, in a batch that was taken
}

// lost are the places of the plays that were not recorded.
func (r receipt) lost() map[int]bool {
	lost := make(map[int]bool, len(r.Errors))
	for _, e := range r.Errors {
		lost[e.Index] = true
	}
	return lost
}

func newFlood(url string, set dataset.Set) *flood {
	return &flood{url: url + "/v1/plays", set: set, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 10_000, DisableCompression: true},
	}}
}

// offer sends that many plays a second for a time, however long the answers
// take, and returns how many a second it was.
func (f *flood) offer(ctx context.Context, rate float64, d time.Duration) (float64, error) {
	var all sync.WaitGroup
	start := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sent := 0
	for time.Since(start) < d {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-tick.C:
		}
		for due := int(time.Since(start).Seconds() * rate / batchSize); sent < due; sent++ {
			all.Go(func() { f.send(ctx) })
		}
	}
	took := time.Since(start)
	all.Wait()
	return float64(sent*batchSize) / took.Seconds(), nil
}

// send sends one batch and notes its answer.
func (f *flood) send(ctx context.Context) {
	f.mu.Lock()
	batch := f.sent
	f.sent++
	f.mu.Unlock()
	body := f.body(batch)
	start := time.Now()
	r, err := f.post(ctx, body)
	a := answer{batch, err, time.Since(start), r}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, a)
}

func (f *flood) body(batch int) []byte {
	b := make([]byte, 0, 64*batchSize)
	b = append(b, `{"plays":[`...)
	for i := range batchSize {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"video_id":"%s","viewer_id":"%s"}`, f.set.VideoID(i%f.set.Videos), floodViewer(batch, i))
	}
	return append(b, `]}`...)
}

func floodViewer(batch, i int) string { return "b" + strconv.Itoa(batch) + "-" + strconv.Itoa(i) }

// post sends a batch. An answer other than 200 and 503 is an error.
func (f *flood) post(ctx context.Context, body []byte) (r receipt, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return r, err
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return r, nil
	case resp.StatusCode != http.StatusOK:
		return r, fmt.Errorf("plays: %s: %s", resp.Status, text)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	if r.Recorded+len(r.Errors) != batchSize {
		return r, fmt.Errorf("plays: a batch of %d was answered with %d recorded and %d not", batchSize, r.Recorded, len(r.Errors))
	}
	return r, nil
}

// missing is how many plays were acknowledged and are not in Redis.
func (f *flood) missing(ctx context.Context, srv *server.Server) (missing int64, err error) {
	k := keys.New("video")
	for _, a := range f.answers {
		if a.Recorded == 0 {
			continue
		}
		lost := a.lost()
		pipe := srv.Admin.Pipeline()
		for video := range f.set.Videos {
			var viewers []string
			for i := video; i < batchSize; i += f.set.Videos {
				if !lost[i] {
					viewers = append(viewers, floodViewer(a.batch, i))
				}
			}
			if len(viewers) == 0 {
				continue
			}
			pipe.HMGet(ctx, k.Online(f.set.VideoID(video)), viewers...)
		}
		replies, err := pipe.Exec(ctx)
		if err != nil {
			return 0, fmt.Errorf("HMGET: %w", err)
		}
		missing += absent(replies)
	}
	return missing, nil
}

// absent counts the fields that HMGETs did not find.
func absent(replies []redis.Cmder) (n int64) {
	for _, reply := range replies {
		for _, value := range reply.(*redis.SliceCmd).Val() {
			if value == nil {
				n++
			}
		}
	}
	return n
}
