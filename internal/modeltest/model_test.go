package modeltest

import (
	"maps"
	"strconv"
	"strings"
)

// model is what Headcount must come to: videos, their viewers, and the value
// stored for each. It knows the rules and nothing of Redis.
type model struct {
	window int64 // seconds
	videos map[string]map[string]string
	// late has the values that another program wrote already stale or
	// implausible, and when. Only these may wait for their hash's next reading,
	// a window at most.
	late map[string]map[string]int64
}

func newModel(window int64) *model {
	return &model{
		window: window,
		videos: make(map[string]map[string]string),
		late:   make(map[string]map[string]int64),
	}
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
	if m.online(value, now) {
		return
	}
	if m.late[video] == nil {
		m.late[video] = make(map[string]int64)
	}
	m.late[video][viewer] = now
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
