// Package dataset says who watches what: the same viewers for every contender,
// computed from their numbers rather than kept in memory.
package dataset

import (
	"strconv"
	"time"
)

// Times of the service that is measured; the product's defaults.
const (
	Window   = 10 * time.Minute
	Beat     = Window / 4
	Interval = 30 * time.Second
	KeyTTL   = 15 * time.Minute
	CountTTL = 12 * time.Minute
)

// stalePercent of the viewers were last seen before the window began.
const stalePercent = 5

// Set is a number of videos, each with the same number of viewers. A random 5 %
// of the viewers are stale; the others beat within Window/4.
type Set struct {
	Videos  int `json:"videos"`
	Viewers int `json:"viewers"` // of each video
}

// Total is how many viewers there are, stale ones included.
func (s Set) Total() int64 { return int64(s.Videos) * int64(s.Viewers) }

// Fresh is how many viewers are not stale: what every contender has to count.
func (s Set) Fresh() int64 {
	var fresh int64
	for i := range uint64(s.Total()) {
		if !stale(i) {
			fresh++
		}
	}
	return fresh
}

// VideoID is the id of the video with this number.
func (s Set) VideoID(video int) string { return strconv.Itoa(10_000_000 + video) }

// ViewerID is the id of a viewer of a video, both by number.
func (s Set) ViewerID(video, viewer int) string {
	return "u" + strconv.FormatUint(1_000_000_000+s.index(video, viewer), 10)
}

// Stale tells whether the viewer was last seen before the window began.
func (s Set) Stale(video, viewer int) bool { return stale(s.index(video, viewer)) }

// LastSeen is when the viewer was last seen, Unix seconds, if it is now. Stale
// viewers are up to half a window late, the others at most a beat ago.
func (s Set) LastSeen(now time.Time, video, viewer int) int64 {
	i := s.index(video, viewer)
	age := mix(i+1<<40) % uint64(Beat/time.Second)
	if stale(i) {
		const late = 10 // seconds, so that the clock's seconds do not decide who is stale
		age = uint64(Window/time.Second) + late + mix(i+1<<41)%uint64(Window/2/time.Second)
	}
	return now.Unix() - int64(age)
}

func (s Set) index(video, viewer int) uint64 {
	return uint64(video)*uint64(s.Viewers) + uint64(viewer)
}

func stale(i uint64) bool { return mix(i)%100 < stalePercent }

// mix spreads consecutive numbers evenly (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
