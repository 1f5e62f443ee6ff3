package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A setting is what one source says about one key.
type setting struct {
	value  any    // of the key's own type; nil when what was written could not be read
	origin string // what an error points at: "config.yaml:3", "HEADCOUNT_WINDOW" or "--window"
}

// A layer is everything one source says: the file, the environment or the flags.
type layer struct {
	settings map[string]setting // by key
	errs     []error            // what is wrong with it, one line each
}

func newLayer() layer { return layer{settings: map[string]setting{}} }

// put records the value of a key, or why it has none.
func (l *layer) put(name, origin string, value any, err error) {
	if err != nil {
		value = nil
		l.errs = append(l.errs, fmt.Errorf("%s: %s: %w", origin, name, err))
	}
	l.settings[name] = setting{value, origin}
}

// parse reads the text of a flag, a variable or a YAML scalar as the type of like. It never fails for text and lists,
// so its errors, which repeat the value, cannot show a secret.
func parse(like any, text string) (any, error) {
	switch like.(type) {
	case time.Duration:
		return parseDuration(text)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number", quote(text))
		}
		return n, nil
	case bool:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%s is neither true nor false", quote(text))
		}
		return text == "true", nil
	case []string:
		return split(text), nil
	default:
		return text, nil
	}
}

func parseDuration(text string) (any, error) {
	if text == "" {
		return nil, errors.New("has no value")
	}
	if strings.Trim(text, "+-.0123456789") == "" {
		return nil, fmt.Errorf("%[1]s has no unit; write %[1]ss, %[1]sm or %[1]sh", clip(text))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a duration such as 500ms, 30s, 10m or 1h30m", quote(text))
	}
	return d, nil
}

// split reads a comma-separated list; the empty text is the empty list.
func split(text string) []string {
	if text == "" {
		return []string{}
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// text is the form of a value that parse reads.
func text(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return Short(v)
	case []string:
		return strings.Join(v, ",")
	default:
		return fmt.Sprint(v)
	}
}

// kind names the type of a value, for people.
func kind(value any) string {
	switch value.(type) {
	case time.Duration:
		return "duration"
	case []string:
		return "list"
	default:
		return fmt.Sprintf("%T", value)
	}
}

// quote shows a value within one line, whatever is in it.
func quote(s string) string { return strconv.Quote(clip(s)) }

// plain shows a name: bare where that is legible, quoted otherwise.
func plain(s string) string {
	if q := quote(s); q != `"`+s+`"` || s == "" {
		return q
	}
	return s
}

// clip shortens what is too long to be shown: the whole of it helps no one to find the mistake.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// suggest words a hint at the known name that was probably meant: the same in another group, or one a few slips of the
// fingers away. It is empty when none is near.
func suggest(name string, known []string, separator string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", min(3, len(name)/3)+1
	for _, k := range known {
		if strings.HasSuffix(k, separator+name) {
			return ", did you mean " + k + "?"
		}
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}

// distance counts the insertions, deletions and replacements of bytes that turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
