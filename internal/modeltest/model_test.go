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
}

func newModel(window int64) *model {
	return &model{window: window, videos: make(map[string]map[string]string)}
}

// write is a play, or whatever another program stores.
func (m *model) write(video, viewer, value string) {
	if m.videos[video] == nil {
		m.videos[video] = make(map[string]string)
	}
	m.videos[video][viewer] = value
}

// leave removes a viewer who was not seen after recordedAt; 0 removes in any case.
func (m *model) leave(video, viewer string, recordedAt int64) {
	at, ok := number(m.videos[video][viewer])
	if newer := ok && at > float64(recordedAt); recordedAt > 0 && newer {
		return
	}
	delete(m.videos[video], viewer)
}

// pass evicts who is stale or implausible at now, and returns the counts.
func (m *model) pass(now int64) map[string]int {
	counts := make(map[string]int)
	for video, viewers := range m.videos {
		maps.DeleteFunc(viewers, func(_, value string) bool {
			at, ok := number(value)
			return !ok || at <= 0 || at > float64(now+120) || at < float64(now-m.window)
		})
		counts[video] = len(viewers)
	}
	return counts
}

// number reads a decimal number without sign or exponent.
func number(value string) (float64, bool) {
	if value == "" || value[0] == '.' || strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	at, err := strconv.ParseFloat(value, 64)
	return at, err == nil
}
