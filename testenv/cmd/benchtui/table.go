package main

import (
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
}

// table is what was measured, in the order of measuring.
type table struct {
	rows  []row
	notes []string
}

// add appends a row and returns it for its target.
func (t *table) add(name, unit string, value float64) *row {
	t.rows = append(t.rows, row{name: name, unit: unit, value: known(value)})
	return &t.rows[len(t.rows)-1]
}

func (r *row) aim(target float64) *row { r.target = known(target); return r }

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
		verdict := ""
		if q := r.value.over(r.target); q.known {
			verdict = "ok"
			if q.value > 1 {
				verdict = "MISSED"
			}
		}
		line(r.name, r.unit, r.value.String(), r.target.String(), r.value.over(r.target).String(), verdict, r.viewer.String(), r.value.over(r.viewer).String())
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
