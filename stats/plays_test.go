package stats

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/keys"
	"headcount/internal/redisclient"
	"headcount/internal/redistest"
	"headcount/recorder"
)

func (e *env) wantPlays(videoID string, want int64) {
	e.Helper()
	got, err := e.plays.Total(e.Context(), videoID)
	e.must(err)
	if got != want {
		e.Errorf("plays of %q = %d, want %d", videoID, got, want)
	}
}

func TestAPlayCountsWhenItBegins(t *testing.T) {
	onEach(t, func(e *env) {
		e.wantPlays("10001", 0)
		for range 3 { // beats
			e.play("10001", "u1")
			e.wantPlays("10001", 1)
		}
		e.play("10002", "u1")
		e.play("10001", "u2")
		e.wantPlays("10001", 2)
		e.wantPlays("10002", 1)
		e.must(e.Leave(e.Context(), "10001", "u1", 0))
		e.play("10001", "u1") // again
		e.wantPlays("10001", 3)
		old := e.redisNow().Unix() - 601 // gone, but not evicted yet
		e.must(e.raw.HSet(e.Context(), e.k.Online("10001"), "u2", old).Err())
		e.play("10001", "u2")
		e.wantPlays("10001", 4)
		e.wantPlays("", 5)
		e.wantTTL(e.k.Plays("10001"), playsTTL-time.Minute, playsTTL)
	})
}

func TestPlaysOfABatchAreDistinct(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	video := []string{"1", "1", "1", "1", "2"}
	_, errs := e.PlayAll(e.Context(), video, []string{"a", "a", "b", "a", "a"})
	e.must(errors.Join(errs...))
	e.wantPlays("1", 2)
	e.wantPlays("2", 1)
}

func TestImplausibleTimesAreNobody(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	now := e.redisNow().Unix()
	values := map[string]any{"text": "tomorrow", "zero": 0, "milliseconds": now * 1000, "slow": now - 90, "fast": now + 90}
	for viewer, value := range values {
		e.must(e.raw.HSet(e.Context(), e.k.Online("10001"), viewer, value).Err())
	}
	for viewer := range values {
		e.play("10001", viewer)
	}
	e.wantPlays("10001", 3) // slow and fast were watching
}

func TestPlaysUnderLoadAreAllCounted(t *testing.T) {
	t.Parallel()
	const callers, each, videos = 16, 100, 5
	e := newEnv(t, recorder.Options{})
	var load sync.WaitGroup
	for caller := range callers {
		load.Go(func() {
			for i := range each {
				if _, err := e.Play(e.Context(), strconv.Itoa(i%videos), strconv.Itoa(caller)); err != nil {
					e.Errorf("Play: %v", err)
				}
			}
		})
	}
	load.Wait()
	e.must(e.Flush(e.Context()))
	for video := range videos {
		e.wantPlays(strconv.Itoa(video), callers)
	}
	e.wantPlays("", callers*videos)
	e.wantFailures(namePlays, 0)
}

// What was carried out though its answer was lost is sent again, and counts once.
func TestPlaysCountOnceWhenAnswersAreLost(t *testing.T) {
	onEach(t, func(e *env) {
		e.play("10001", "u1")
		var loss answerLoss
		e.rdb.AddHook(&loss)
		waits := e.plays.sentNow()
		for i := range 10 {
			// The play itself is told apart from its increment: it has an answer.
			e.plays.Add(e.redisNow(), "10001", 1)
			loss.lossy.Store(i%2 == 0)
			_ = e.Flush(e.Context())
			waits = max(waits, e.plays.sentNow())
		}
		loss.lossy.Store(false)
		e.must(e.Flush(e.Context()))
		e.wantPlays("10001", 11)
		e.wantPlays("", 11)
		if loss.lost.Load() < 5 || waits == 0 {
			e.Errorf("%d answers were lost, %d calls waited: the test has shown nothing", loss.lost.Load(), waits)
		}
	})
}

func (p *Plays) sentNow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}

// A write that is carried out twice by whoever sends it adds once; and two
// writers do not take each other's writes for their own.
func TestAWriteIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	now := e.redisNow()
	other := NewPlays(e.store, e.failures)
	for round := range 3 {
		for _, p := range []*Plays{e.plays, other} {
			p.Add(now, "10001", 2)
			calls := p.Calls()
			for range 3 {
				redisclient.RunScripts(e.Context(), e.raw, calls)
			}
			p.Settle()
			if p.Pending() {
				e.Errorf("round %d: something is left to write", round)
			}
		}
	}
	e.wantPlays("10001", 12)
	e.wantPlays("", 12)
}

// After an hour passes may have removed the mark that tells a write sent again.
func TestPlaysInDoubtForLongAreNotSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPlays(&Store{o: Options{Keys: keys.New("video"), Zone: time.UTC}}, nil)
		p.Add(time.Now(), "10001", 1)
		if got := len(p.Calls()); got != 2 { // of the video and of the site
			t.Fatalf("%d calls, want 2", got)
		}
		p.Settle() // without an answer
		<-time.After(doubtAge)
		if got := len(p.Calls()); got != 2 {
			t.Errorf("%d calls after half an hour, want the 2 again", got)
		}
		p.Settle()
		<-time.After(time.Nanosecond)
		if got := len(p.Calls()); got != 0 || p.Pending() {
			t.Errorf("%d calls after more than that, want none and nothing pending", got)
		}
	})
}

func TestPlaysOutliveARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEnvOn(t, redisclient.Options{Mode: redisclient.Single, Addrs: []string{server.Addr()}}, recorder.Options{})
	e.plays.Add(e.redisNow(), "10001", 3)
	server.Kill(t)
	calls := e.plays.Calls()
	redisclient.RunScripts(e.Context(), e.rdb, calls)
	e.plays.Settle()
	if !e.plays.Pending() {
		t.Error("nothing is left to write, want what could not be")
	}
	e.plays.Add(time.Now(), "10001", 1) // meanwhile
	server.Restart(t)
	e.play("10001", "u1")
	e.wantPlays("10001", 5)
}

// A key of another type is given up; Redis being full is waited for.
func TestPlaysGiveUpWhatIsHopeless(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	e.must(e.raw.Set(e.Context(), e.k.Plays("10001"), "x", time.Minute).Err())
	e.play("10001", "u1")
	e.wantFailures(namePlays, 1)
	if e.plays.Pending() {
		t.Error("something is left to write")
	}
	e.wantPlays("", 1)
}

func TestPlaysAreBounded(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	p := NewPlays(e.store, e.failures)
	now := e.redisNow()
	for i := range maxWaiting + 5 {
		p.Add(now, strconv.Itoa(i), 1)
	}
	if got := len(p.waiting); got != maxWaiting {
		t.Errorf("%d videos wait, want %d", got, maxWaiting)
	}
	e.wantFailures(namePlays, 6) // and the site is one of them
}

func TestPlaysPerPeriod(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	now := e.redisNow()
	fields := map[string]any{fieldTotal: 1000}
	for i := range 400 {
		fields[fieldDay+now.AddDate(0, 0, -i).Format(dayText)] = 1
	}
	for i := range 190 {
		fields[fieldHour+now.Add(-time.Duration(i)*time.Hour).Format(hourText)] = 2
	}
	e.must(e.raw.HSet(e.Context(), e.k.Plays("10001"), fields).Err())
	for _, tt := range []struct {
		per, last string
		periods   int
		each      int64 // of all but the first and the last; 0: differs
	}{
		{"hour", "", 24, 2},
		{"hour", "3h", 3, 2},
		{"day", "", 30, 1},
		{"", "2d", 2, 1},
		{"week", "30d", 0, 7},
		{"month", "90d", 0, 0},
	} {
		total, from, plays, err := e.plays.Count(e.Context(), "10001", tt.per, tt.last)
		e.must(err)
		if total != 1000 || len(from) != len(plays) || (tt.periods > 0 && len(from) != tt.periods) {
			t.Errorf("per %s, last %s: total %d, %d and %d periods, want 1000 and %d", tt.per, tt.last, total, len(from), len(plays), tt.periods)
			continue
		}
		for i := 1; i < len(plays)-1; i++ {
			if tt.each > 0 && plays[i] != tt.each {
				t.Errorf("per %s: plays[%d] = %d, want %d", tt.per, i, plays[i], tt.each)
			}
			if !from[i].After(from[i-1]) {
				t.Errorf("per %s: %v does not follow %v", tt.per, from[i], from[i-1])
			}
		}
	}
	_, weeks, _, err := e.plays.Count(e.Context(), "10001", "week", "30d")
	e.must(err)
	_, months, counts, err := e.plays.Count(e.Context(), "10001", "month", "90d")
	e.must(err)
	if weeks[0].Weekday() != time.Monday || months[0].Day() != 1 {
		t.Errorf("weeks begin on %v, months on the %d", weeks[0].Weekday(), months[0].Day())
	}
	if want := int64(months[1].Sub(months[0]) / (24 * time.Hour)); counts[0] != want {
		t.Errorf("plays of the first month = %d, want all its %d days", counts[0], want)
	}
}

func TestPlaysRefuseQuestions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, recorder.Options{})
	for _, tt := range []struct{ per, last, want string }{
		{"year", "1d", "per: must be hour, day, week or month"},
		{"hour", "169h", "last: must be hours, 1h to 168h, or days, 1d to 7d"},
		{"day", "24h", "last: must be days, 1d to 366d"},
		{"month", "367d", "last: must be days, 1d to 366d"},
	} {
		_, _, _, err := e.plays.Count(e.Context(), "10001", tt.per, tt.last)
		wantBadInput(t, err, tt.want)
	}
}

func TestPeriodsInZones(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, zone, now string
		last            last
		hours, days     []string
	}{
		{
			"the end of summer repeats an hour", "Europe/Berlin", "2026-10-25T04:30:00+01:00", last{5, false},
			[]string{"01", "02", "03", "04"}, []string{"20261025"},
		},
		{
			"its beginning leaves one out", "Europe/Berlin", "2026-03-29T04:30:00+02:00", last{3, false},
			[]string{"01", "03", "04"}, []string{"20260329"},
		},
		{
			"midnight left out", "America/Sao_Paulo", "2018-11-05T12:00:00-02:00", last{3, true},
			nil, []string{"20181103", "20181104", "20181105"},
		},
		{
			"half an hour", "Australia/Lord_Howe", "2026-10-04T04:10:00+11:00", last{4, false},
			[]string{"00", "01", "02", "03", "04"}, nil,
		},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		now = now.In(zone)
		var hours, days []string
		for _, h := range hoursOf(tt.last.from(now), now) {
			hours = append(hours, h.Format("15"))
		}
		for _, d := range daysOf(tt.last.from(now), now) {
			days = append(days, d.Format(dayText))
		}
		if tt.hours != nil && !cmp.Equal(hours, tt.hours) {
			t.Errorf("%s: hours = %v, want %v", tt.name, hours, tt.hours)
		}
		if tt.days != nil && !cmp.Equal(days, tt.days) {
			t.Errorf("%s: days = %v, want %v", tt.name, days, tt.days)
		}
	}
}
