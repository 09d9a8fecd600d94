// Package doctor is the screen of problems. One list has what nodes report, at once, and what an
// examination finds, with evidence and fixes; below it are the affected nodes, and what each says.
// The app runs the examination itself.
package doctor

import (
	"slices"
	"strconv"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// Panes of the screen.
const (
	paneFindings = iota
	paneNodes
	paneEvidence
	paneFinding // the finding under the cursor
)

// Model is the screen.
type Model struct {
	names    pages.NodeNames
	opened   pages.Open
	scope    scope
	only     string // the only node of the scope; "" = not one node
	exam     examination
	findings *components.Table[*row]
	pane     int   // the focused one
	drawn    []int // the panes drawn, in order
	examines bool  // there is a doctor
	groups   []*group
	nodes    *components.Table[*affected]
	scroll   components.Scroll
	beside   components.Scroll // scroll position of paneFinding
	proofs   bool              // the evidence is unfolded
	unfold   bool              // it was just unfolded: scroll to it
	frame    components.Frame
	docs     pages.Documents
	since    time.Time
	code     string // cause whose nodes are shown
	view     uint64
	seen     bool
}

// New opens the screen for one node, several or all.
func New(o pages.Open) pages.Page {
	m := &Model{opened: o, scope: scopeOf(o), only: o.Node, frame: components.Frame{Top: true}}
	m.findings = m.findingTable()
	m.nodes = components.NewTable(components.TableOptions[*affected]{
		Show:    func(a *affected, column string) (string, bool) { return m.names.Cell(a.Name, column) },
		Columns: nodeColumns(), ID: func(a *affected) string { return a.Name },
		Fault: func(a *affected) bool { return a.Severity != document.SeverityInfo },
		Role:  func(a *affected, column string) draw.Role { return roleOf(a.Severity, column) },
		Sort: []components.SortKey{
			{Key: "n", Column: "node", Title: "name"}, {Key: "s", Column: "severity", Title: "severity"},
			{Key: "t", Column: "type", Title: "type"}, {Key: "z", Column: "zone", Title: "zone"},
		},
		Order: "severity,node", Empty: "No nodes.",
	})
	return m
}

func roleOf(s document.Severity, column string) draw.Role {
	switch column {
	case "severity":
		return pages.SeverityRole(s)
	case "what", "type", "zone", "when":
		return draw.Faint
	}
	return draw.Text
}

// nodeColumns returns the columns of cnictl nodes, and those for what is wrong with a node.
func nodeColumns() []query.Column[*affected] {
	out := query.Arrange(query.Of(tables.Nodes(), func(a *affected) *store.Node { return a.Node }),
		query.Shown{Name: "node", Least: 13}, query.Shown{Name: "type", Drop: 4, Wide: true}, query.Shown{Name: "zone", Drop: 5, Wide: true})
	return slices.Insert(out, 1,
		query.Column[*affected]{Name: "severity", Header: "SEVERITY", Title: "severity on this node", Drop: 3,
			Text:   func(a *affected) string { return string(a.Severity) },
			Number: func(a *affected) (float64, bool) { return float64(a.Severity.Rank()), true }},
		query.Column[*affected]{Name: "what", Header: "WHAT", Title: "what the node says", Least: 12, Drop: 1, Text: func(a *affected) string {
			if len(a.Problems) > 0 {
				return a.Problems[0].Message
			}
			if a.Times == 0 {
				return ""
			}
			return human.Plural(a.Times, "failed ADD", "failed ADDs") + " since the daemon started"
		}},
	)
}

func count(n int) string {
	if n == 0 {
		return show.Unknown
	}
	return strconv.Itoa(n)
}

// Name implements pages.Page.
func (m *Model) Name() string { return "doctor" }

// Title is the breadcrumb.
func (m *Model) Title() string { return "Doctor (" + m.scope.title + ")" }

// Focus samples the visible nodes.
func (m *Model) Focus(pages.Context) watch.Focus {
	f := watch.Focus{Open: m.only}
	if m.onFindings() {
		if r, ok := m.findings.Row(); ok {
			f.Visible = first(r.nodes())
		}
		return f
	}
	for _, a := range m.nodes.Visible() {
		f.Visible = append(f.Visible, a.Name)
	}
	return f
}

// onFindings reports whether the focus is on the findings, not on a node.
func (m *Model) onFindings() bool { return m.pane == paneFindings || m.pane == paneFinding }

// Row is the finding under the cursor, else what the nodes report; with the nodes focused, the problems
// of the node under the cursor.
func (m *Model) Row(pages.Context) any {
	if m.onFindings() {
		r, ok := m.findings.Row()
		switch {
		case !ok:
			return m.Document()
		case r.finding != nil:
			return r.finding
		}
		all := []document.Problem{}
		for _, a := range r.group.Nodes {
			all = append(all, a.Problems...)
		}
		return all
	}
	if a, ok := m.nodes.Row(); ok {
		return a.Problems
	}
	return nil
}

// Document is the report, as cnictl doctor -o json prints it. It is nil if there is none or
// the focus is on a node.
func (m *Model) Document() any {
	if r := m.exam.whole(); r != nil && m.onFindings() {
		return r
	}
	return nil
}

// List is the focused table.
func (m *Model) List() components.List {
	switch m.pane {
	case paneFindings:
		return m.findings
	case paneNodes:
		return m.nodes
	}
	return nil
}
