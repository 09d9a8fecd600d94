package doctor

import (
	"cmp"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/report"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// row is one problem: found by the doctor, reported by nodes, or both under one code.
type row struct {
	finding *document.Finding // nil: only reported
	group   *group            // nil: no node reports it
	follows bool              // a consequence of the row above
	place   int               // in the list
}

func (r *row) code() string {
	if r.finding != nil {
		return r.finding.Code
	}
	return r.group.Code
}

func (r *row) severity() document.Severity {
	if r.finding != nil {
		return document.Severity(r.finding.Severity)
	}
	return r.group.Severity
}

func (r *row) title() string {
	if r.finding != nil {
		return r.finding.Title
	}
	return inventory.CauseTitle(r.group.Code)
}

func (r *row) confidence() string {
	if r.finding != nil {
		return r.finding.Confidence
	}
	return "reported"
}

// nodes returns the names of the affected nodes; none if the whole cluster is.
func (r *row) nodes() (names []string) {
	if r.finding != nil {
		names = slices.Clone(r.finding.Nodes)
	}
	if r.group != nil {
		for _, a := range r.group.Nodes {
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
	}
	return names
}

// rowsOf merges what the doctor found with what nodes report, worst first. Consequences come below the
// first cause that explains them. Until the doctor has examined the nodes there are only reports.
func rowsOf(r *document.DoctorReport, groups []*group) (out []*row) {
	if r == nil {
		r = &document.DoctorReport{}
	}
	by := make(map[string]*group, len(groups))
	for _, g := range groups {
		by[g.Code] = g
	}
	taken := map[string]bool{}
	take := func(f *document.Finding, follows bool) *row {
		taken[f.Code] = true
		return &row{finding: f, group: by[f.Code], follows: follows}
	}
	placed := make([]bool, len(r.Explained))
	var blocks [][]*row
	for i := range r.Findings {
		f := &r.Findings[i]
		block := []*row{take(f, false)}
		for j := range r.Explained {
			if e := &r.Explained[j]; !placed[j] && slices.Contains(e.Causes, f.Code) {
				placed[j] = true
				block = append(block, take(e, true))
			}
		}
		blocks = append(blocks, block)
	}
	for j := range r.Explained {
		if !placed[j] {
			blocks = append(blocks, []*row{take(&r.Explained[j], true)})
		}
	}
	for _, g := range groups {
		if taken[g.Code] {
			continue
		}
		at := slices.IndexFunc(blocks, func(block []*row) bool { return explains(block[0], g) })
		if at >= 0 {
			blocks[at] = append(blocks[at], &row{group: g, follows: true})
		} else {
			blocks = append(blocks, []*row{{group: g}})
		}
	}
	slices.SortStableFunc(blocks, func(a, b []*row) int { return cmp.Compare(a[0].severity().Rank(), b[0].severity().Rank()) })
	for _, row := range slices.Concat(blocks...) {
		row.place = len(out)
		out = append(out, row)
	}
	return out
}

// explains reports whether what nodes report is a consequence of a finding about all of them.
func explains(r *row, g *group) bool {
	if r.finding == nil {
		return false
	}
	e, ok := catalogue.Lookup(r.finding.Code)
	return ok && slices.Contains(e.Observes(), g.Code) &&
		(len(r.finding.Nodes) == 0 || !slices.ContainsFunc(g.Nodes, func(a *affected) bool { return !slices.Contains(r.finding.Nodes, a.Name) }))
}

func (m *Model) findingTable() *components.Table[*row] {
	return components.NewTable(components.TableOptions[*row]{
		Columns: m.findingColumns(), ID: (*row).code,
		Fault: func(r *row) bool { return r.severity() != document.SeverityInfo },
		Row:   func(r *row) (draw.Role, bool) { return draw.Faint, r.follows },
		Role: func(r *row, column string) draw.Role {
			switch column {
			case "severity", "code":
				return pages.SeverityRole(r.severity())
			case "where", "title":
				return draw.Faint
			}
			return draw.Text
		},
		Show: func(r *row, column string) (string, bool) {
			return "  " + r.code(), r.follows && column == "code"
		},
		Sort: []components.SortKey{
			{Key: "s", Column: "severity", Title: "severity"}, {Key: "n", Column: "code", Title: "code"},
			{Key: "i", Column: "times", Title: "times"}, {Key: "c", Column: "confidence", Title: "confidence"},
			{Key: "w", Column: "where", Title: "where"},
		},
		Limits: map[string]components.Limit{"code": {Most: 26, Narrow: 24}, "where": {Most: 60, Narrow: 18}},
		Sparse: map[string]string{"times": ""},
		Order:  "severity", Empty: "No problems found.", Rows: "findings",
	})
}

func (m *Model) findingColumns() []query.Column[*row] {
	return []query.Column[*row]{
		{Name: "severity", Header: "SEVERITY", Title: "info, warning, error or critical",
			Text: func(r *row) string { return string(r.severity()) },
			Rank: func(r *row) int { return r.place }}, // the doctor's own order
		{Name: "code", Header: "CODE", Title: "code of the cause", Text: func(r *row) string { return show.OrUnknown(r.code()) }},
		{Name: "confidence", Header: "CONFIDENCE", Title: "suspected, probable or confirmed by the doctor, or only reported", Drop: 2,
			Text: func(r *row) string { return r.confidence() },
			Rank: func(r *row) int {
				return slices.Index([]string{"confirmed", "probable", "suspected", "reported"}, r.confidence())
			}},
		{Name: "times", Header: "ADDS", Title: "failed ADDs with this cause since the daemons started", Right: true, Drop: 4,
			Text:   func(r *row) string { return count(r.times()) },
			Number: func(r *row) (float64, bool) { return float64(r.times()), true }},
		{Name: "where", Header: "WHERE", Title: "what is affected", Drop: 1, Least: 18, Text: m.whereOf},
		{Name: "title", Header: "TITLE", Title: "the cause in a line", Drop: 3, Least: 32, Text: func(r *row) string { return r.title() }},
	}
}

func (r *row) times() int {
	if r.group == nil {
		return 0
	}
	return r.group.Times
}

// whereOf returns what a row is about.
func (m *Model) whereOf(r *row) string {
	if r.finding != nil {
		return m.where(r.finding)
	}
	if len(r.group.Nodes) == 1 {
		return "node " + m.names.Short(r.group.Nodes[0].Name)
	}
	return human.Plural(len(r.group.Nodes), "node", "nodes")
}

// where returns the scope of a finding, with the short name of its node.
func (m *Model) where(f *document.Finding) string {
	short := *f
	if short.Scope.Node != "" {
		short.Scope.Node = m.names.Short(f.Scope.Node)
	}
	return report.Where(&short)
}

// findingLines draws the list and, in a line or two below it, what was ruled out or remains
// open.
func (m *Model) findingLines(s draw.Style, width, height int) []string {
	e := &m.exam
	if e.whole() == nil && len(m.findings.All()) == 0 && m.examines {
		return m.noReport(s, width, height)
	}
	var below []string
	if height > 5 {
		for _, line := range m.rest() {
			below = append(below, draw.NewLine(s, width).Add(draw.Faint, line).String())
		}
	}
	if e.report == nil && e.err != nil && !e.running {
		below = append(below, draw.NewLine(s, width).Add(draw.Bad, "Not examined: "+e.err.Error()).String())
	}
	lines := m.findings.Lines(s, width, height-len(below))
	if s.Linear { // without padding
		lines = lines[:min(len(lines), max(len(m.findings.Visible()), 1)+1)]
	}
	return append(lines, below...)
}

// rest is what the list says below its rows; without rows, the pane of the finding says it.
func (m *Model) rest() []string {
	if r := m.exam.whole(); r != nil && len(m.findings.All()) > 0 {
		return restOf(r)
	}
	return nil
}

// restOf summarises what a report contains besides findings.
func restOf(r *document.DoctorReport) []string {
	var out []string
	line := r.Checks.String()
	if len(r.Undecided) > 0 {
		line += "; inconclusive: " + strings.Join(r.Undecided, " ")
	}
	out = append(out, line)
	var unread []string
	for _, u := range report.Unreads(r) {
		text := u.Reason + ": " + u.What()
		if len(u.Nodes) < r.Nodes {
			text += " of " + human.Plural(len(u.Nodes), "node", "nodes")
		}
		unread = append(unread, text)
	}
	if len(unread) == 0 {
		return out
	}
	return append(out, "not read: "+strings.Join(unread, "; "))
}
