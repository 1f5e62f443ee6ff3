package modeltest

import (
	"maps"
	"strconv"
	"strings"
	"time"
)

// model is what Headcount must come to: videos, their viewers, and the value
// stored for each. It knows the rules and nothing of Redis.
type model struct {
	window int64 // seconds
	videos map[string]map[string]string
	// late has the values that another program wrote implausible, or as of more
	// than two minutes ago, and when. Only these may wait for their hash's next
	// reading, a window at most.
	late map[string]map[string]int64

	site    map[string]int64               // viewer → last seen on the site
	plays   map[string]int64               // by video; "" for all
	uniques map[string]map[string]struct{} // likewise
	peaks   map[string]*peaks              // likewise
}

// peaks are the largest counts of passes.
type peaks struct {
	day         string
	today, ever int64
}

func newModel(window int64) *model {
	return &model{
		window: window,
		videos: make(map[string]map[string]string),
		late:   make(map[string]map[string]int64),

		site:    make(map[string]int64),
		plays:   make(map[string]int64),
		uniques: make(map[string]map[string]struct{}),
		peaks:   make(map[string]*peaks),
	}
}

// play notes for statistics that a play was recorded; write is still to come.
func (m *model) play(at int64, video, viewer string) {
	m.site[viewer] = at
	watching := m.online(m.videos[video][viewer], at)
	for _, id := range []string{video, ""} {
		if !watching {
			m.plays[id]++
		}
		if m.uniques[id] == nil {
			m.uniques[id] = make(map[string]struct{})
		}
		m.uniques[id][viewer] = struct{}{}
	}
}

// leaveSite is leave for the site.
func (m *model) leaveSite(viewer string, recordedAt int64) {
	if recordedAt == 0 || m.site[viewer] <= recordedAt {
		delete(m.site, viewer)
	}
}

// onSite is how many are on the site at now.
func (m *model) onSite(now int64) (n int64) {
	for _, at := range m.site {
		if m.seen(at, now) {
			n++
		}
	}
	return n
}

func (m *model) seen(at, now int64) bool { return at >= now-m.window && at <= now+120 }

// passed takes in a complete pass at now: peaks are raised and, if it trims the
// site, who is not on it any more is forgotten.
func (m *model) passed(now int64, trims bool) {
	if trims {
		maps.DeleteFunc(m.site, func(_ string, at int64) bool { return !m.seen(at, now) })
	}
	day := time.Unix(now, 0).UTC().Format("20060102")
	total := 0
	for video, viewers := range m.videos {
		m.raise(video, day, len(viewers))
		total += len(viewers)
	}
	m.raise("", day, total)
}

func (m *model) raise(video, day string, viewers int) {
	if viewers == 0 {
		return
	}
	p := m.peaks[video]
	if p == nil {
		p = &peaks{}
		m.peaks[video] = p
	}
	if p.day != day {
		p.day, p.today = day, 0
	}
	p.today, p.ever = max(p.today, int64(viewers)), max(p.ever, int64(viewers))
}

// write is a play, or whatever another program stores.
func (m *model) write(video, viewer, value string) {
	if m.videos[video] == nil {
		m.videos[video] = make(map[string]string)
	}
	m.videos[video][viewer] = value
	delete(m.late[video], viewer)
}

// writeAt is write by another program, at now.
func (m *model) writeAt(now int64, video, viewer, value string) {
	m.write(video, viewer, value)
	if at, ok := number(value); ok && at >= float64(now-120) && m.online(value, now) {
		return
	}
	if m.late[video] == nil {
		m.late[video] = make(map[string]int64)
	}
	m.late[video][viewer] = now
}

// rename puts one video's hash in the place of another's, at now.
func (m *model) rename(now int64, from, to string) {
	moved := m.videos[from]
	for _, video := range []string{from, to} {
		delete(m.videos, video)
		delete(m.late, video)
	}
	for viewer, value := range moved {
		m.writeAt(now, to, viewer, value)
	}
}

func (m *model) online(value string, now int64) bool {
	at, ok := number(value)
	return ok && at > 0 && at <= float64(now+120) && at >= float64(now-m.window)
}

// leave removes a viewer who was not seen after recordedAt; 0 removes in any case.
func (m *model) leave(video, viewer string, recordedAt int64) {
	at, ok := number(m.videos[video][viewer])
	if newer := ok && at > float64(recordedAt); recordedAt > 0 && newer {
		return
	}
	m.forget(video, viewer)
}

func (m *model) forget(video, viewer string) {
	delete(m.videos[video], viewer)
	delete(m.late[video], viewer)
}

// pass evicts who is stale or implausible at now. Whoever is in left, as the
// hash was found after the pass, and may wait there, has not been evicted yet.
func (m *model) pass(video string, now int64, left map[string]string) {
	maps.DeleteFunc(m.videos[video], func(viewer, value string) bool {
		if m.online(value, now) {
			return false
		}
		since, late := m.late[video][viewer]
		if _, waits := left[viewer]; waits && late && now-since <= m.window {
			return false
		}
		delete(m.late[video], viewer)
		return true
	})
}

// number reads a decimal number without sign or exponent.
func number(value string) (float64, bool) {
	if value == "" || value[0] == '.' || strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	at, err := strconv.ParseFloat(value, 64)
	return at, err == nil
}
