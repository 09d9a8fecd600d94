package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// number is a figure that may not be known.
type number struct {
	value float64
	known bool
}

func known(v float64) number { return number{v, true} }

// over is the ratio of two figures, unknown where it says nothing.
func (n number) over(m number) number {
	if !n.known || !m.known || m.value == 0 {
		return number{}
	}
	return known(n.value / m.value)
}

// String has three digits, or all of those before the point.
func (n number) String() string {
	if !n.known {
		return "–"
	}
	switch a := math.Abs(n.value); {
	case n.value == math.Trunc(n.value), a >= 100:
		return fmt.Sprintf("%.0f", n.value)
	case a >= 10:
		return fmt.Sprintf("%.1f", n.value)
	}
	return fmt.Sprintf("%.2f", n.value)
}

// row is one measured quantity. Less is better for all.
type row struct {
	name   string
	unit   string
	value  number
	target number // terminal-ux.md §7, and of the commands
	viewer number // eks-node-viewer's
	strict bool   // a bench that misses the target has failed
}

// table is what was measured, in the order of measuring.
type table struct {
	rows  []row
	notes []string

	progress io.Writer // gets each row as soon as it is whole; nil: none
	told     int       // how many it got
}

// say tells how far the bench is.
func (t *table) say(format string, args ...any) {
	if t.progress != nil {
		fmt.Fprintf(t.progress, format+"\n", args...)
	}
}

// tell says the rows that were not told yet.
func (t *table) tell() {
	for ; t.told < len(t.rows); t.told++ {
		r := &t.rows[t.told]
		line := strings.TrimSpace(r.name + ": " + r.value.String() + " " + r.unit)
		if r.target.known {
			line += " (target " + r.target.String() + ") " + r.verdict()
		}
		t.say("%s", line)
	}
}

// add appends a row and returns it for its target. The rows before it are whole by now.
func (t *table) add(name, unit string, value float64) *row {
	t.tell()
	t.rows = append(t.rows, row{name: name, unit: unit, value: known(value)})
	return &t.rows[len(t.rows)-1]
}

func (r *row) aim(target float64) *row { r.target = known(target); return r }

// must is aim, and a bench that misses it has failed.
func (r *row) must(target float64) *row { r.strict = true; return r.aim(target) }

// misses tells whether a row is beyond its target.
func (r *row) misses() bool { return r.target.known && r.value.value > r.target.value }

// verdict is of a row with a target; "" of another.
func (r *row) verdict() string {
	switch {
	case !r.target.known:
		return ""
	case r.misses():
		return "MISSED"
	}
	return "ok"
}

// failed names the rows that had to reach their target and did not.
func (t *table) failed() error {
	var errs []error
	for i := range t.rows {
		if r := &t.rows[i]; r.strict && r.misses() {
			errs = append(errs, fmt.Errorf("%s: %s, at most %s is allowed", r.name, strings.TrimSpace(r.value.String()+" "+r.unit), r.target))
		}
	}
	return errors.Join(errs...)
}

func (r *row) beside(viewer float64) *row { r.viewer = known(viewer); return r }

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	widest := 0
	for _, r := range t.rows {
		widest = max(widest, len([]rune(r.name)))
	}
	line := func(name string, cells ...string) {
		fmt.Fprintf(tw, "%s%s\t%s\t\n", name, strings.Repeat(" ", widest-len([]rune(name))), strings.Join(cells, "\t"))
	}
	fmt.Fprintln(w)
	line("", "unit", "measured", "target", "/target", "", "eks-node-viewer", "/eks-node-viewer")
	for _, r := range t.rows {
		line(r.name, r.unit, r.value.String(), r.target.String(), r.value.over(r.target).String(), r.verdict(), r.viewer.String(), r.value.over(r.viewer).String())
	}
	tw.Flush() //nolint:errcheck // as with all that is printed
	for _, n := range t.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile of a list that need not be sorted; 1 is the most.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
