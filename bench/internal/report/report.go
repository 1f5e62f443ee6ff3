// Package report turns figures into tables for people and JSON for programs.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Table is what one workload measured.
type Table struct {
	Workload string
	About    string
	Columns  []Column
	Rows     []Row
	Bars     []Bar
	Notes    []string
}

// Column is one figure of every row.
type Column struct {
	Key   string // in JSON, with its unit
	Title string // in the table
}

// Row is the figures of one contender, one for each column; NaN where it has none.
type Row struct {
	Name    string
	Figures []float64
}

// Bar is a demand and what was measured.
type Bar struct {
	Measure string
	Value   float64
	AtLeast bool // the bar is a lower bound
	Limit   float64
	Unit    string
}

// Met tells whether the demand is met. What could not be measured is not.
func (b Bar) Met() bool {
	if b.AtLeast {
		return b.Value >= b.Limit
	}
	return b.Value <= b.Limit
}

// None is a figure that there is not.
func None() float64 { return math.NaN() }

// MS is a duration as a figure in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Median is the middle of values, or the mean of the two in the middle.
func Median[T ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Percentile is the value that p of the values, of 1, do not exceed.
func Percentile[T cmp.Ordered](values []T, p float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// Write prints the table for people.
func (t Table) Write(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s: %s\n", t.Workload, t.About)
	header := []string{""}
	for _, c := range t.Columns {
		header = append(header, c.Title)
	}
	lines := [][]string{header}
	for _, r := range t.Rows {
		line := []string{r.Name}
		for _, f := range r.Figures {
			line = append(line, Number(f))
		}
		lines = append(lines, line)
	}
	align(&out, lines)
	for _, b := range t.Bars {
		fmt.Fprintln(&out, "  "+b.String())
	}
	for _, note := range t.Notes {
		fmt.Fprintln(&out, "  - "+note)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// align writes lines of cells in columns: names to the left, figures to the right.
func align(out *strings.Builder, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		for i, cell := range line {
			if i == 0 {
				fmt.Fprintf(out, "  %-*s", widths[i], cell)
			} else {
				fmt.Fprintf(out, "  %*s", widths[i], cell)
			}
		}
		out.WriteByte('\n')
	}
}

// String is the bar on a line of its own, with a mark.
func (b Bar) String() string {
	mark, sign := "NOT MET", "<="
	if b.Met() {
		mark = "met"
	}
	if b.AtLeast {
		sign = ">="
	}
	unit := ""
	if b.Unit != "" {
		unit = " " + b.Unit
	}
	return fmt.Sprintf("%-7s  %s: %s%s (bar: %s %s%s)", mark, b.Measure, Number(b.Value), unit, sign, trim(b.Limit), unit)
}

// Number is a figure with three significant digits, or all before the point.
func Number(f float64) string {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return "-"
	case f == 0:
		return "0"
	case abs >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case abs >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case abs >= 0.1:
		return strconv.FormatFloat(f, 'f', 2, 64)
	default:
		return strconv.FormatFloat(f, 'g', 2, 64)
	}
}

func trim(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// MarshalJSON gives each row's figures by the keys of their columns, null where
// there is none.
func (t Table) MarshalJSON() ([]byte, error) {
	rows := make([]map[string]any, len(t.Rows))
	for i, r := range t.Rows {
		rows[i] = map[string]any{"name": r.Name}
		for j, c := range t.Columns {
			rows[i][c.Key] = number(r.Figures[j])
		}
	}
	bars := make([]map[string]any, len(t.Bars))
	for i, b := range t.Bars {
		bound := "max"
		if b.AtLeast {
			bound = "min"
		}
		bars[i] = map[string]any{"measure": b.Measure, "value": number(b.Value), bound: b.Limit, "unit": b.Unit, "met": b.Met()}
	}
	return json.Marshal(map[string]any{
		"workload": t.Workload, "about": t.About, "rows": rows, "bars": bars, "notes": t.Notes,
	})
}

// number is a figure as JSON has it, which knows no NaN.
func number(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f
}
