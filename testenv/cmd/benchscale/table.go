package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"cnictl/testenv/cmd/internal/figure"
)

// table holds the measured rows, in order.
type table struct {
	rows  []*row
	notes []string // printed below the rows
}

// add appends a row.
func (t *table) add(name, unit string, samples ...float64) *row {
	r := &row{name: name, unit: unit, samples: samples}
	t.rows = append(t.rows, r)
	return r
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

const explanation = `
median of the runs, with minimum and maximum. "/upstream": ours as a ratio to upstream's
figure, which was measured on another machine; "bound": the minimum that EC2's latencies and
calls allow, with no time for the node; "/before": ours as a ratio to the baseline file.`

// print writes the rows next to those of a baseline, and how each bound is computed.
func (t *table) print(w io.Writer, before baseline) {
	fmt.Fprintln(w)
	lines := [][]string{{"", "unit", "ours", "spread", "upstream", "/upstream", "aim", "must", "bound", "/bound", "before", "/before", ""}}
	var whys []string
	for _, r := range t.rows {
		bound := r.bound.least.String()
		if r.bound.why != "" {
			bound += fmt.Sprintf(" [%d]", footnote(&whys, r.bound.why))
		}
		m, old := r.median(), before.of(r.name)
		lines = append(lines, []string{r.name, r.unit, m.String(), r.spread(), r.upstream.String(), m.Over(r.upstream).String(), r.aim.String(), r.must.String(),
			bound, m.Over(r.bound.least).String(), old.String(), m.Over(old).String(), r.verdict()})
	}
	figure.Lines(w, lines)
	fmt.Fprintln(w, explanation)
	for i, why := range whys {
		fmt.Fprintf(w, "[%d] %s.\n", i+1, why)
	}
	for _, n := range t.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}

// footnote returns the number of a text, which is added if it is new.
func footnote(list *[]string, text string) int {
	for i, known := range *list {
		if known == text {
			return i + 1
		}
	}
	*list = append(*list, text)
	return len(*list)
}

// verdict returns the row's result in a word or two.
func (r *row) verdict() string {
	m := r.median()
	switch {
	case r.misses():
		return "MISSED"
	case !r.aim.Known || !m.Known:
		return ""
	case m.Value > r.aim.Value:
		return "below aim"
	}
	return "ok"
}

// missed returns an error that names the rows that miss their target.
func (t *table) missed() error {
	var errs []error
	for _, r := range t.rows {
		if r.misses() {
			errs = append(errs, fmt.Errorf("%s: %s, at most %s is allowed", r.name, strings.TrimSpace(r.median().String()+" "+r.unit), r.must))
		}
	}
	return errors.Join(errs...)
}
