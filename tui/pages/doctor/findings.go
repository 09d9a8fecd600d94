package doctor

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/doctor/catalogue"
	"cnictl/doctor/report"
	"cnictl/tui/components"
	"cnictl/tui/theme"
)

// row is a finding in the list: a root cause or, below it, a consequence.
type row struct {
	*document.Finding
	follows bool
	place   int // in the list
}

// rowsOf puts each consequence below the first cause that explains it.
func rowsOf(r *document.DoctorReport) []*row {
	if r == nil {
		return nil
	}
	var out []*row
	add := func(f *document.Finding, follows bool) { out = append(out, &row{f, follows, len(out)}) }
	placed := make([]bool, len(r.Explained))
	for i := range r.Findings {
		f := &r.Findings[i]
		add(f, false)
		for j := range r.Explained {
			if e := &r.Explained[j]; !placed[j] && slices.Contains(e.Causes, f.Code) {
				placed[j] = true
				add(e, true)
			}
		}
	}
	for j := range r.Explained {
		if !placed[j] {
			add(&r.Explained[j], true)
		}
	}
	return out
}

func (m *Model) findingTable() *components.Table[*row] {
	return components.NewTable(components.TableOptions[*row]{
		Columns: m.findingColumns(), ID: func(r *row) string { return r.Code },
		Fault: func(r *row) bool { return severity(r.Severity) > catalogue.Info },
		Row:   func(r *row) (theme.Role, bool) { return theme.Faint, r.follows },
		Role: func(r *row, column string) theme.Role {
			switch column {
			case "severity", "code":
				return severityRole(r.Severity)
			case "where", "title":
				return theme.Faint
			}
			return theme.Text
		},
		Show: func(r *row, column string) (string, bool) {
			return "  " + show.Safe(r.Code), r.follows && column == "code"
		},
		Sort: []components.SortKey{
			{Key: "s", Column: "severity", Title: "severity"}, {Key: "n", Column: "code", Title: "code"},
			{Key: "c", Column: "confidence", Title: "confidence"}, {Key: "w", Column: "where", Title: "where"},
		},
		Limits: map[string]components.Limit{"where": {Most: 44, Narrow: 18}},
		Order:  "severity", Empty: "No known cause found.",
	})
}

func (m *Model) findingColumns() []query.Column[*row] {
	return []query.Column[*row]{
		{Name: "severity", Header: "SEVERITY", Title: "info, warning, error or critical", Text: func(r *row) string { return show.Safe(r.Severity) },
			Rank: func(r *row) int { return r.place }}, // the doctor's own order
		{Name: "code", Header: "CODE", Title: "code of the cause", Text: func(r *row) string { return show.Safe(r.Code) }},
		{Name: "confidence", Header: "CONFIDENCE", Title: "suspected, probable or confirmed", Drop: 2, Text: func(r *row) string { return show.Safe(r.Confidence) },
			Rank: func(r *row) int {
				return slices.Index([]string{"confirmed", "probable", "suspected"}, r.Confidence)
			}},
		{Name: "where", Header: "WHERE", Title: "what is affected", Drop: 1, Least: 18, Text: func(r *row) string { return m.where(r.Finding) }},
		{Name: "title", Header: "TITLE", Title: "the cause in a line", Drop: 3, Least: 16, Text: func(r *row) string { return show.Safe(r.Title) }},
	}
}

// where returns the scope of a finding, with the short name of its node.
func (m *Model) where(f *document.Finding) string {
	short := *f
	if short.Scope.Node != "" {
		short.Scope.Node = m.names.Short(f.Scope.Node)
	}
	return show.Safe(report.Where(&short))
}

func severity(name string) catalogue.Severity {
	s, _ := report.Severity(name)
	return s
}

func severityRole(name string) theme.Role {
	switch s := severity(name); {
	case s >= catalogue.Error:
		return theme.Bad
	case s == catalogue.Warning:
		return theme.Warn
	}
	return theme.Info
}

// findingLines draws the list and, in a line or two below it, what was ruled out or remains
// open.
func (m *Model) findingLines(s components.Style, width, height int) []string {
	e := &m.exam
	if e.report == nil {
		return m.noReport(s, width, height)
	}
	var below []string
	if rest := restOf(e.report); height > 5 {
		for _, line := range rest {
			below = append(below, components.NewLine(s, width).Add(theme.Faint, line).String())
		}
	}
	lines := m.findings.Lines(s, width, height-len(below))
	if s.Linear { // without padding
		lines = lines[:min(len(lines), max(len(m.findings.Visible()), 1)+1)]
	}
	return append(lines, below...)
}

// restOf summarises what a report contains besides findings.
func restOf(r *document.DoctorReport) []string {
	var out []string
	line := show.Plural(len(r.RuledOut), "cause", "causes") + " ruled out"
	if n := len(r.Undecided); n > 0 {
		line += fmt.Sprintf(", %d undecided: %s", n, strings.Join(r.Undecided, " "))
	}
	out = append(out, show.Safe(line))
	var unread []string
	for _, u := range report.Unreads(r) {
		text := u.Reason + ": " + u.What()
		if len(u.Nodes) < r.Nodes {
			text += " of " + show.Plural(len(u.Nodes), "node", "nodes")
		}
		unread = append(unread, text)
	}
	if len(unread) == 0 {
		return out
	}
	return append(out, show.Safe("not read: "+strings.Join(unread, "; ")))
}
