package chaos

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func beat(r int64) *entry {
	return &entry{site: true, outcome: acknowledged, recordedAt: r, atLeast: r}
}

func offline(guard int64) *entry {
	return &entry{site: true, leave: true, outcome: acknowledged, recordedAt: guard}
}

// statistics are what Redis holds of one viewer, u1.
type statistics struct {
	online         int64 // last seen; 0: not on the site
	plays, uniques int64
}

func TestJudgeOfStatistics(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		entries  []*entry // plays and leaves of 10001, heartbeats, and leaves of the site
		stored   statistics
		breaking bool
		want     []kind
	}{
		"nothing":                             {},
		"a play":                              {entries: []*entry{played(at - 9)}, stored: statistics{at - 9, 1, 1}},
		"a play that is a second older there": {entries: []*entry{played(at - 9)}, stored: statistics{at - 10, 1, 1}},
		"a play and no heartbeat":             {entries: []*entry{played(at - 9)}, stored: statistics{0, 1, 1}, want: []kind{wrongOnline}},
		"a play that did not count":           {entries: []*entry{played(at - 9)}, stored: statistics{at - 9, 0, 1}},
		"a play that counted twice":           {entries: []*entry{played(at - 9)}, stored: statistics{at - 9, 2, 1}, want: []kind{wrongPlays, wrongPlays}},
		"a beat that counted":                 {entries: []*entry{played(at - 9), played(at - 5)}, stored: statistics{at - 5, 2, 1}, want: []kind{wrongPlays, wrongPlays}},
		"a beat that did not refresh":         {entries: []*entry{played(at - 90), played(at - 5)}, stored: statistics{at - 90, 1, 1}, want: []kind{wrongOnline}},
		"back after a leave":                  {entries: []*entry{played(at - 9), left(at - 9), played(at - 5)}, stored: statistics{at - 5, 2, 1}},
		"back, and it never counted": {entries: []*entry{played(at - 9), left(0), played(at - 8), left(0), played(at - 7), left(0), played(at - 6), left(0), played(at - 5)},
			stored: statistics{at - 5, 1, 1}, want: []kind{wrongPlays, wrongPlays}},
		"an older tab left":             {entries: []*entry{played(at - 9), played(at - 7), left(at - 9), played(at - 5)}, stored: statistics{at - 5, 1, 1}},
		"back after the window":         {entries: []*entry{played(at - 700), played(at - 5)}, stored: statistics{at - 5, 2, 1}},
		"unknown, and counted":          {entries: []*entry{as(unknown, played(0))}, stored: statistics{at - 5, 1, 1}},
		"unknown, and not":              {entries: []*entry{as(unknown, played(0))}},
		"unknown, and counted twice":    {entries: []*entry{as(unknown, played(0))}, stored: statistics{at - 5, 2, 1}, want: []kind{wrongPlays, wrongPlays}},
		"refused, and counted":          {entries: []*entry{as(refused, played(0))}, stored: statistics{0, 1, 1}, want: []kind{wrongPlays, wrongPlays}},
		"of a write that was repeated":  {entries: []*entry{played(at - 9)}, breaking: true},
		"uniques two off":               {entries: []*entry{played(at - 9)}, stored: statistics{at - 9, 1, 3}},
		"uniques three off":             {entries: []*entry{played(at - 9)}, stored: statistics{at - 9, 1, 4}, want: []kind{wrongUniques, wrongUniques}},
		"a heartbeat":                   {entries: []*entry{beat(at - 9)}, stored: statistics{at - 9, 0, 0}},
		"a heartbeat that is missing":   {entries: []*entry{beat(at - 9)}, want: []kind{wrongOnline}},
		"a heartbeat beyond the window": {entries: []*entry{beat(at - 700)}},
		"… that outlived a pass":        {entries: []*entry{beat(at - 700)}, stored: statistics{at - 700, 0, 0}, want: []kind{wrongOnline}},
		"of the future":                 {entries: []*entry{as(unknown, beat(0))}, stored: statistics{at + 9, 0, 0}, want: []kind{wrongOnline}},
		"offline":                       {entries: []*entry{beat(at - 9), offline(at - 9)}},
		"offline and there":             {entries: []*entry{beat(at - 9), offline(0)}, stored: statistics{at - 9, 0, 0}, want: []kind{wrongOnline}},
		"offline, but seen since":       {entries: []*entry{beat(at - 9), beat(at - 5), offline(at - 9)}, want: []kind{wrongOnline}},
		"a video left":                  {entries: []*entry{played(at - 9), left(0)}, stored: statistics{0, 1, 1}, want: []kind{wrongOnline}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			for _, e := range tt.entries {
				if !e.site {
					l.entries[viewing{"10001", "u1"}] = append(l.entries[viewing{"10001", "u1"}], e)
				}
				if e.site || !e.leave {
					l.site["u1"] = append(l.site["u1"], e)
				}
			}
			e := evidence{&judge{prefix: "video", window: window, keyTTL: keyTTL, breaking: tt.breaking}, tt.stored.snapshot(), l.entries, l.site, nil}
			var got []kind
			for _, c := range []check{checkOnline, checkPlays, checkUniques, checkStatisticsTTLs} {
				for _, d := range c(e) {
					got = append(got, d.kind)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func (is statistics) snapshot() snapshot {
	const day = 24 * time.Hour
	s := soundSnapshot()
	if is.online != 0 {
		s.keys["video:stats:online"] = value{kind: "zset", ttl: keyTTL, scores: map[string]float64{"u1": float64(is.online)}}
	}
	if is.plays > 0 {
		plays := value{kind: "hash", ttl: 400 * day, fields: map[string]string{"total": strconv.FormatInt(is.plays, 10)}}
		s.keys["video:stats:plays:10001"], s.keys["video:stats:plays:"] = plays, plays
	}
	if is.uniques > 0 {
		uniques := value{kind: "string", ttl: 8 * day, uniques: is.uniques}
		s.keys["video:stats:uniques:{10001}:2023111422"], s.keys["video:stats:site_uniques:{site}:2023111422"] = uniques, uniques
	}
	return s
}

// TestTroubles: of an acknowledged play, statistics may be lost only while another request had trouble.
func TestTroubles(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLedger()
	for _, p := range [][2]int{{0, 2}, {10, 12}, {11, 13}, {9, 10}} {
		l.trouble(period{now.Add(time.Duration(p[0]) * time.Second), now.Add(time.Duration(p[1]) * time.Second)})
	}
	e := evidence{judge: &judge{}, troubles: l.troubles}
	for after, want := range map[int]bool{-1: false, 0: true, 2: true, 5: false, 8: false, 9: true, 13: true, 14: false} {
		if got := e.doubtful(&entry{settled: now.Add(time.Duration(after) * time.Second)}); got != want {
			t.Errorf("a play acknowledged after %d s is doubtful: %t, want %t", after, got, want)
		}
	}
}
