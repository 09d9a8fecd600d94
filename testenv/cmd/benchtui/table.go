package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"cnictl/testenv/cmd/internal/figure"
)

// row is one measured quantity. Less is better for all.
type row struct {
	name   string
	unit   string
	value  figure.Number
	target figure.Number // terminal-ux.md §7, and of the commands
	viewer figure.Number // eks-node-viewer's
	strict bool          // a bench that misses the target has failed
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
		if r.target.Known {
			line += " (target " + r.target.String() + ") " + r.verdict()
		}
		t.say("%s", line)
	}
}

// add appends a row and returns it for its target. The rows before it are whole by now.
func (t *table) add(name, unit string, value float64) *row {
	t.tell()
	t.rows = append(t.rows, row{name: name, unit: unit, value: figure.Of(value)})
	return &t.rows[len(t.rows)-1]
}

func (r *row) aim(target float64) *row { r.target = figure.Of(target); return r }

// must is aim, and a bench that misses it has failed.
func (r *row) must(target float64) *row { r.strict = true; return r.aim(target) }

// misses reports whether a row is beyond its target.
func (r *row) misses() bool { return r.target.Known && r.value.Value > r.target.Value }

// verdict is of a row with a target; "" of another.
func (r *row) verdict() string {
	switch {
	case !r.target.Known:
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

func (r *row) beside(viewer float64) *row { r.viewer = figure.Of(viewer); return r }

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *table) print(w io.Writer) {
	fmt.Fprintln(w)
	lines := [][]string{{"", "unit", "measured", "target", "/target", "", "eks-node-viewer", "/eks-node-viewer"}}
	for i := range t.rows {
		r := &t.rows[i]
		lines = append(lines, []string{
			r.name, r.unit, r.value.String(), r.target.String(), r.value.Over(r.target).String(), r.verdict(), r.viewer.String(), r.value.Over(r.viewer).String(),
		})
	}
	figure.Lines(w, lines)
	for _, n := range t.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}
