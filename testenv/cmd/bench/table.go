package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"cnictl/testenv/cmd/internal/frame"
)

// row is one measured quantity. Less is better for every row. Unknown figures are NaN, and so is
// what is computed from them.
type row struct {
	name, unit string
	samples    []float64
	other      float64 // upstream's or eks-node-viewer's, as measured (docs/performance.md)
	aim, must  float64
	bound      bound // the minimum that EC2 allows
}

// bound is the minimum that any daemon can reach for a figure, and how it is computed.
type bound struct {
	least float64
	why   string
}

type table struct {
	rows  []*row
	notes []string // printed below the rows
}

var unknown = math.NaN()

func (t *table) add(name, unit string, samples ...float64) *row {
	r := &row{name, unit, samples, unknown, unknown, unknown, bound{unknown, ""}}
	t.rows = append(t.rows, r)
	return r
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// against sets another's figure and our targets as ratios to it.
func (r *row) against(other, must, aim float64) *row {
	r.other, r.must, r.aim = other, other*must, other*aim
	return r
}

func (r *row) beside(other float64) *row { r.other = other; return r }
func (r *row) aimAt(v float64) *row      { r.aim = v; return r }
func (r *row) atMost(v float64) *row     { r.aim, r.must = v, v; return r } // else the run fails

func (r *row) median() float64 {
	if len(r.samples) == 0 {
		return unknown
	}
	return slices.Sorted(slices.Values(r.samples))[len(r.samples)/2]
}

func (r *row) verdict() string {
	switch m := r.median(); {
	case m > r.must:
		return "MISSED"
	case m > r.aim:
		return "below aim"
	case m <= r.aim:
		return "ok"
	}
	return ""
}

func (t *table) missed() error {
	var errs []error
	for _, r := range t.rows {
		if r.verdict() == "MISSED" {
			figure := strings.TrimSpace(number(r.median()) + " " + r.unit)
			errs = append(errs, fmt.Errorf("%s: %s, at most %s is allowed", r.name, figure, number(r.must)))
		}
	}
	return errors.Join(errs...)
}

// print writes the rows next to those of a baseline, without columns in which nothing is known, and
// how each bound is computed.
func (t *table) print(w io.Writer, before baseline) {
	lines := [][]string{{"", "unit", "measured", "spread", "other", "/other", "aim", "must", "bound", "/bound", "before", "/before", ""}}
	var whys []string
	for _, r := range t.rows {
		least, spread := number(r.bound.least), ""
		if r.bound.why != "" {
			if !slices.Contains(whys, r.bound.why) {
				whys = append(whys, r.bound.why)
			}
			least += fmt.Sprintf(" [%d]", slices.Index(whys, r.bound.why)+1)
		}
		if len(r.samples) > 1 {
			spread = number(slices.Min(r.samples)) + "–" + number(slices.Max(r.samples))
		}
		m, old := r.median(), before.of(r.name)
		lines = append(lines, []string{r.name, r.unit, number(m), spread, number(r.other), number(m / r.other), number(r.aim), number(r.must),
			least, number(m / r.bound.least), number(old), number(m / old), r.verdict()})
	}
	for column := len(lines[0]) - 1; column > 0; column-- {
		if !slices.ContainsFunc(lines[1:], func(l []string) bool { return l[column] != "" && l[column] != number(unknown) }) {
			for i, l := range lines {
				lines[i] = slices.Delete(l, column, column+1)
			}
		}
	}
	columns(w, "Measured", lines)
	fmt.Fprint(w, "\nMedians. \"other\" is upstream's figure or eks-node-viewer's, from another machine, \"bound\" the minimum that\n"+
		"EC2's latencies and calls allow, \"before\" the baseline file's; \"/\" is the ratio of ours to it.\n")
	for i, why := range whys {
		fmt.Fprintf(w, "[%d] %s.\n", i+1, why)
	}
	for _, n := range t.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}

// columns prints lines of cells: the first, a name, left-aligned, the others, figures, right-aligned.
func columns(w io.Writer, title string, lines [][]string) {
	fmt.Fprintf(w, "\n%s\n", title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	widest := 0
	for _, l := range lines {
		widest = max(widest, utf8.RuneCountInString(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(tw, "%s%s\t%s\t\n", l[0], strings.Repeat(" ", widest-utf8.RuneCountInString(l[0])), strings.Join(l[1:], "\t"))
	}
	check(tw.Flush())
}

// grid prints a table of one phase. A list of times becomes its p50, p90 and p99.
func (r *run) grid(title, head string, lines ...[]any) {
	cells := [][]string{strings.Split(head, "|")}
	for _, l := range lines {
		var line []string
		for _, v := range l {
			switch v := v.(type) {
			case time.Duration:
				line = append(line, fmt.Sprintf("%.2f", milliseconds(v)))
			case float64:
				line = append(line, fmt.Sprintf("%.2f", v))
			case []time.Duration:
				for _, q := range []float64{0.5, 0.9, 0.99} {
					line = append(line, fmt.Sprintf("%.2f", quantile(v, q)))
				}
			default:
				line = append(line, fmt.Sprint(v))
			}
		}
		cells = append(cells, line)
	}
	columns(r.out, title, cells)
}

// number prints three digits, or all those before the point.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "–"
	case v == math.Trunc(v), a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func milliseconds(d time.Duration) float64             { return float64(d) / float64(time.Millisecond) }
func quantile(list []time.Duration, q float64) float64 { return milliseconds(frame.Quantile(list, q)) }
func median(list []time.Duration) time.Duration        { return frame.Quantile(list, 0.5) }

// baseline holds the figures of an earlier run, from a file in the repository. Compare
// ratios between rows, calls and memory: times depend on the machine.
type baseline struct {
	Machine string             `json:"machine"`
	Load    string             `json:"load"` // the machine's, at the end of the run
	Median  map[string]float64 `json:"median"`
}

func readBaseline(path string) (b baseline) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		check(fmt.Errorf("read baseline %s (make bench-scale ARGS=--write makes a new one): %w", path, err))
	}
	return b
}

func (b baseline) of(name string) float64 {
	if v, ok := b.Median[name]; ok {
		return v
	}
	return unknown
}

func (t *table) writeBaseline(path string) {
	b := baseline{machine(), load(), map[string]float64{}}
	for _, r := range t.rows {
		if m := r.median(); !math.IsNaN(m) {
			b.Median[r.name] = m
		}
	}
	check(os.WriteFile(path, append(must(json.MarshalIndent(b, "", "  ")), '\n'), 0o644))
}
