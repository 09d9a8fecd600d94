package app

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// memory is the program's resource use, sent when this page is opened.
type memory struct {
	Heap       uint64 // bytes
	Goroutines int
}

// diagnosticsPage shows how reading the fleet is going: each node's connection and latency, why it could
// not be read, and the program's own resource use.
type diagnosticsPage struct {
	table  *components.Table[*store.Node]
	memory memory
	names  pages.NodeNames
	above  int // lines above the table, as last drawn
}

// newDiagnostics makes the page.
func newDiagnostics() *diagnosticsPage {
	p := &diagnosticsPage{}
	o := diagnosticsTable()
	o.Show = func(n *store.Node, column string) (string, bool) {
		return p.names.Cell(n.Metadata.Name, column)
	}
	p.table = components.NewTable(o)
	return p
}

func diagnosticsTable() components.TableOptions[*store.Node] {
	columns := query.Arrange(tables.Nodes(),
		query.Shown{Name: "node"}, query.Shown{Name: "reading", Drop: 1}, query.Shown{Name: "via", Drop: 2},
		query.Shown{Name: "latency", Drop: 3}, query.Shown{Name: "daemon", Drop: 4}, query.Shown{Name: "source", Drop: 5})
	columns = append(columns,
		query.Column[*store.Node]{Name: "sampled", Header: "SAMPLED", Title: "when it last answered", Text: sampledAt},
		query.Column[*store.Node]{
			Name: "error", Header: "ERROR", Title: "why it could not be read", Least: 12, Text: unreadWhy, Rank: unreadFirst,
		},
	)
	return components.TableOptions[*store.Node]{
		Columns: columns,
		ID:      func(n *store.Node) string { return n.Metadata.Name },
		Fault:   func(n *store.Node) bool { return n.Error != nil },
		Role: func(n *store.Node, column string) draw.Role {
			if column == "error" && n.Error != nil {
				return draw.Bad
			}
			return draw.Text
		},
		Order: "error,-latency",
		Sort: []components.SortKey{
			{Key: "n", Column: "node", Title: "name"},
			{Key: "e", Column: "error", Title: "error"},
			{Key: "l", Column: "latency", Title: "latency"},
			{Key: "v", Column: "via", Title: "way"},
		},
		Empty: "no nodes yet",
	}
}

func sampledAt(n *store.Node) string {
	if n.SampledAt == nil {
		return show.Unknown
	}
	return n.SampledAt.UTC().Format(time.TimeOnly)
}

func unreadWhy(n *store.Node) string {
	if n.Error == nil {
		return show.Unknown
	}
	return string(n.Error.Reason) + ": " + n.Error.Message
}

// unreadFirst puts the nodes that could not be read first.
func unreadFirst(n *store.Node) int {
	if n.Error != nil {
		return 0
	}
	return 1
}

// Name implements pages.Page.
func (*diagnosticsPage) Name() string { return "diagnostics" }

// Title implements pages.Page.
func (*diagnosticsPage) Title() string { return "Diagnostics" }

// List implements pages.Listed.
func (p *diagnosticsPage) List() components.List { return p.table }

// Focus implements pages.Page.
func (*diagnosticsPage) Focus(pages.Context) watch.Focus { return watch.Focus{} }

// Row implements pages.Page.
func (p *diagnosticsPage) Row(pages.Context) any {
	if n, ok := p.table.Row(); ok {
		return n.NodeIPAM
	}
	return nil
}

// Update implements pages.Page.
func (p *diagnosticsPage) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case memory:
		p.memory = msg
	case pages.Changed:
		p.names.Learn(c.View.Nodes)
		p.table.SetRows(c.View.Nodes, c.Clock)
	case pages.Second:
		p.table.Settle(c.Clock)
	case pages.Mouse:
		if msg.Wheel != 0 {
			p.table.Wheel(msg.Wheel, c.Clock)
		} else {
			p.table.Click(msg.X, msg.Y-p.above, c.Clock)
		}
	case pages.Do:
		if msg.Action == keymap.In {
			if n, ok := p.table.Row(); ok {
				open := pages.Open{Screen: "node", Node: n.Metadata.Name}
				return func() tea.Msg { return open }
			}
			return nil
		}
		p.table.Do(msg.Action, c.Clock)
	}
	return nil
}

// Lines implements pages.Page.
func (p *diagnosticsPage) Lines(c pages.Context) []string {
	s := c.Style()
	lines := p.stats(s, c)
	p.above = len(lines)
	lines = append(lines, p.table.Lines(s, c.Width, c.Height-len(lines))...)
	return draw.Exactly(lines, c.Width, c.Height)
}

// fact is a named figure.
type fact struct{ name, value string }

// stats returns the figures, in as many lines as they need, and any problems.
func (p *diagnosticsPage) stats(s draw.Style, c pages.Context) []string {
	st := c.Source.Stats()
	facts := []fact{
		{"sweep", duration(st.SweepTook)}, {"interval", duration(st.Interval)}, {"others", duration(st.Background)},
		{"latency p50", duration(st.LatencyP50)}, {"p99", duration(st.LatencyP99)},
		{"samples", draw.Thousands(int(st.Samples))}, {"failed", draw.Thousands(int(st.Failed))},
		{"dropped", draw.Thousands(int(st.Dropped))}, {"in flight", strconv.Itoa(st.InFlight)},
		{"tunnels", strconv.Itoa(st.Tunnels)}, {"API requests", draw.Thousands(int(st.APIRequests))},
	}
	if p.memory.Heap > 0 {
		heap := strconv.FormatUint(p.memory.Heap>>20, 10) + " MiB"
		facts = append(facts, fact{"heap", heap}, fact{"goroutines", strconv.Itoa(p.memory.Goroutines)})
	}
	var lines []string
	l := draw.NewLine(s, c.Width).Gap(1)
	for _, f := range facts {
		if l.Room() < draw.Width(f.name)+draw.Width(f.value)+2 {
			lines = append(lines, l.String())
			l = draw.NewLine(s, c.Width).Gap(1)
		}
		l.Add(draw.Faint, f.name+" ").Add(draw.Text, f.value).Gap(2)
	}
	lines = append(lines, l.String())
	note := func(r draw.Role, text string) {
		lines = append(lines, draw.NewLine(s, c.Width).Gap(1).Add(r, text).String())
	}
	if st.Widened {
		note(draw.Warn, s.Pick("⚠ ", "W ")+"large fleet: the interval is longer than configured")
	}
	if st.Problem != "" && (c.Linear || len(c.View.Nodes) == 0) { // otherwise it is below the header
		note(draw.Bad, "! "+st.Problem)
	}
	return lines
}

func duration(d time.Duration) string {
	switch {
	case d <= 0:
		return show.Unknown
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}
