package stats

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redisclient"
)

var (
	//go:embed plays.lua
	playsSource string
	playsScript = redis.NewScript(playsSource)
)

// Fields of a hash of plays.
const (
	fieldTotal  = "total"
	fieldHour   = "h:" // and the hour
	fieldDay    = "d:" // and the day
	fieldWriter = "w:" // and a writer's id: the number of its last write
)

const (
	playsTTL = 400 * 24 * time.Hour

	// A write whose outcome stays unknown for so long is given up: the marks that
	// tell a repeated write go after markAge, and it must not be counted twice.
	doubtAge = 30 * time.Minute
	markAge  = time.Hour

	// maxWaiting is how many videos may have plays that are not written, and
	// maxDoubtful how many of them are sent again beside one batch.
	maxWaiting  = 100_000
	maxDoubtful = 100
)

var errTooManyWait = errors.New("too many videos have plays that are not written")

// Plays counts how often videos, and any videos, were started: by viewers who were
// not watching that video before. They live in a hash for each video.
//
// Its writes add up, so none may be carried out twice, and Redis's answer may be
// lost. Each has a number, which the hash keeps: one whose outcome is unknown is
// sent again as it was until Redis answers, while later plays of the video wait. The zero
// value is not usable; call NewPlays.
type Plays struct {
	*Store
	failures *Failures
	writer   string // the field of this writer

	mu      sync.Mutex
	number  int64                // of the last write: microseconds, so that it tells its age
	waiting map[string]increment // by video: not sent yet
	sent    map[string]sentPlays // by video: not answered yet
}

// increment is what to add, by field.
type increment map[string]int64

type sentPlays struct {
	call *redisclient.ScriptCall
	at   time.Time // when it was first sent, by our clock
}

// NewPlays returns the statistic. What cannot be written goes to failures.
func NewPlays(s *Store, failures *Failures) *Plays {
	return &Plays{
		Store: s, failures: failures, writer: fieldWriter + rand.Text()[:12],
		waiting: make(map[string]increment), sent: make(map[string]sentPlays),
	}
}

// Add notes that a video was started n times, at now by Redis's clock.
func (p *Plays) Add(now time.Time, videoID string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number = max(p.number, now.UnixMicro())
	now = now.In(p.o.Zone)
	for _, id := range []string{videoID, ""} {
		add := p.waiting[id]
		if add == nil {
			if len(p.waiting)+len(p.sent) >= maxWaiting {
				p.failures.Note(namePlays, errTooManyWait)
				continue
			}
			add = make(increment)
			p.waiting[id] = add
		}
		add[fieldTotal] += n
		add[fieldHour+now.Format(hourText)] += n
		add[fieldDay+now.Format(dayText)] += n
	}
}

// Calls returns what is to be written: one call for each video, all those that
// were not sent yet and some of those whose outcome is unknown. Settle must see
// them answered before Calls is called again.
func (p *Plays) Calls() []*redisclient.ScriptCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	var calls []*redisclient.ScriptCall
	for videoID, s := range p.sent {
		if time.Since(s.at) > doubtAge { // the mark that tells it was done may be gone
			delete(p.sent, videoID)
		} else if s.call.Reply = nil; len(calls) < maxDoubtful {
			calls = append(calls, s.call)
		}
	}
	for videoID, add := range p.waiting {
		if _, doubtful := p.sent[videoID]; !doubtful {
			s := sentPlays{call: p.call(videoID, add), at: time.Now()}
			calls = append(calls, s.call)
			p.sent[videoID] = s
			delete(p.waiting, videoID)
		}
	}
	return calls
}

func (p *Plays) call(videoID string, add increment) *redisclient.ScriptCall {
	p.number++
	args := []any{int64(playsTTL / time.Second), p.writer, p.number}
	for field, n := range add {
		args = append(args, field, n)
	}
	return &redisclient.ScriptCall{Script: playsScript, Key: p.o.Keys.Plays(videoID), Args: args}
}

// Settle takes in the answers to the last Calls. Whatever Redis may have carried
// out, without telling, stays to be sent again.
func (p *Plays) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for videoID, s := range p.sent {
		if s.call.Reply == nil {
			continue
		}
		err := s.call.Reply.Err()
		if err != nil {
			p.failures.Note(namePlays, err)
		}
		hopeless := redis.HasErrorPrefix(err, "WRONGTYPE") || redis.HasErrorPrefix(err, "ERR")
		if err == nil || hopeless {
			delete(p.sent, videoID)
		}
	}
}

// Pending reports whether there is anything to write.
func (p *Plays) Pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)+len(p.sent) > 0
}
