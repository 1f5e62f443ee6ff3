package stats

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How keys and fields write an hour and a day, in the zone. Where a clock is set
// back at the end of summer, the repeated hour is the same one here.
const (
	hourText = "2006010215"
	dayText  = "20060102"
)

// InputError says what is wrong with a question.
type InputError struct{ Field, Reason string }

func (e *InputError) Error() string { return e.Field + ": " + e.Reason }

// BadInput marks the error as the caller's fault, so that it can be answered
// with a 400.
func (e *InputError) BadInput() (field, reason string) { return e.Field, e.Reason }

// last is how far back a question goes: hours or days, the current one included.
type last struct {
	n    int
	days bool
}

// parseLast reads "24h" or "7d", up to the given numbers; a unit with the number
// 0 is not taken. "" is otherwise.
func parseLast(text, otherwise string, hours, days int) (last, error) {
	if text == "" {
		text = otherwise
	}
	for _, unit := range []struct {
		suffix string
		most   int
	}{{"h", hours}, {"d", days}} {
		digits, ok := strings.CutSuffix(text, unit.suffix)
		n, err := strconv.ParseUint(digits, 10, 16)
		if ok && err == nil && n > 0 && int(n) <= unit.most {
			return last{int(n), unit.suffix == "d"}, nil
		}
	}
	return last{}, &InputError{"last", "must be " + accepted(hours, days)}
}

func accepted(hours, days int) string {
	switch {
	case days == 0:
		return fmt.Sprintf("hours, 1h to %dh", hours)
	case hours == 0:
		return fmt.Sprintf("days, 1d to %dd", days)
	case days == 1:
		return fmt.Sprintf("hours, 1h to %dh, or 1d", hours)
	}
	return fmt.Sprintf("hours, 1h to %dh, or days, 1d to %dd", hours, days)
}

// hours is about how many hours the span has.
func (l last) hours() int {
	if l.days {
		return 24 * l.n
	}
	return l.n
}

// from is when the span begins, by a clock in the zone: with an hour, or with a
// day's first hour.
func (l last) from(now time.Time) time.Time {
	if l.days {
		return day(now, 1-l.n)
	}
	past := time.Duration(now.Minute())*time.Minute + time.Duration(now.Second())*time.Second + time.Duration(now.Nanosecond())
	return now.Add(-past - time.Duration(l.n-1)*time.Hour)
}

// day is when the day that is so many after t's began. Where clocks jump over
// midnight, it begins at one.
func day(t time.Time, after int) time.Time {
	noon := time.Date(t.Year(), t.Month(), t.Day()+after, 12, 0, 0, 0, t.Location())
	midnight := time.Date(noon.Year(), noon.Month(), noon.Day(), 0, 0, 0, 0, noon.Location())
	if midnight.Day() != noon.Day() {
		return midnight.Add(time.Hour)
	}
	return midnight
}

// hoursOf lists when the hours from then to now began, each by its own text
// once. There are zones that move by half an hour.
func hoursOf(from, now time.Time) []time.Time {
	var hours []time.Time
	for t := from; !t.After(now); t = t.Add(30 * time.Minute) {
		if n := len(hours); n == 0 || hours[n-1].Format(hourText) != t.Format(hourText) {
			hours = append(hours, t)
		}
	}
	return hours
}

// daysOf lists when the days from then to now began.
func daysOf(from, now time.Time) []time.Time {
	var days []time.Time
	for i := 0; !day(from, i).After(now); i++ {
		days = append(days, day(from, i))
	}
	return days
}
