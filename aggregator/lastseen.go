package aggregator

import "math"

// lastSeen reads a hash's value: Unix seconds in decimal, a fraction ignored.
// ok is false for what is no plausible time: not a number, zero, or after newest.
func lastSeen(value string, newest int64) (at int64, ok bool) {
	for i := range len(value) {
		switch c := value[i]; {
		case c >= '0' && c <= '9' && at < math.MaxInt64/100:
			at = at*10 + int64(c-'0')
		case c == '.' && i > 0:
			return at, at > 0 && at <= newest && allDigits(value[i+1:])
		default:
			return 0, false
		}
	}
	return at, at > 0 && at <= newest
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
