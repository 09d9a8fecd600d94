package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"cnictl/testenv/cmd/internal/figure"
)

// row is one measured quantity. Less is better for every row.
type row struct {
	name   string
	unit   string
	value  figure.Number
	target figure.Number // ours, or a limit of the commands
	viewer figure.Number // eks-node-viewer's
	strict bool          // the bench fails if the target is missed
}

// table holds the measured rows, in order.
type table struct {
	rows  []row
	notes []string

	progress io.Writer // receives each row as soon as it is complete; may be nil
	reported int       // number of rows already written to progress
}

// say prints progress.
func (t *table) say(format string, args ...any) {
	if t.progress != nil {
		fmt.Fprintf(t.progress, format+"\n", args...)
	}
}

// report prints the rows added since the last call.
func (t *table) report() {
	for ; t.reported < len(t.rows); t.reported++ {
		r := &t.rows[t.reported]
		line := strings.TrimSpace(r.name + ": " + r.value.String() + " " + r.unit)
		if r.target.Known {
			line += " (target " + r.target.String() + ") " + r.verdict()
		}
		t.say("%s", line)
	}
}

// add appends a row and returns it so that the caller can set its target. Earlier rows are
// complete by now.
func (t *table) add(name, unit string, value float64) *row {
	t.report()
	t.rows = append(t.rows, row{name: name, unit: unit, value: figure.Of(value)})
	return &t.rows[len(t.rows)-1]
}

func (r *row) aim(target float64) *row { r.target = figure.Of(target); return r }

// must sets a target that fails the bench if it is missed.
func (r *row) must(target float64) *row { r.strict = true; return r.aim(target) }

// misses reports whether a row exceeds its target.
func (r *row) misses() bool { return r.target.Known && r.value.Value > r.target.Value }

// verdict returns the row's result, or "" if the row has no target.
func (r *row) verdict() string {
	switch {
	case !r.target.Known:
		return ""
	case r.misses():
		return "MISSED"
	}
	return "ok"
}

// failed returns an error that names the rows that miss a strict target.
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
