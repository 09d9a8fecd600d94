// Package trunks is the screen of security groups for pods: nodes with a trunk ENI, the
// branch ENIs in use, pods that wait for one, and nodes that cannot have any.
package trunks

import (
	"time"

	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/pages"
	"cnictl/tui/pages/parts"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Panes of the screen.
const (
	paneNodes = iota
	panePods
)

// rest is how long the cursor has to stay on a node before its pods are asked for: they
// are a request to the API server.
const rest = time.Second

// Model is the screen.
type Model struct {
	table  *components.Table[store.TrunkUse]
	frame  parts.Frame
	scroll parts.Scroll
	docs   parts.Documents
	since  time.Time // when the cursor came to docs.Node
	first  string    // node to begin with
	names  parts.Names
	view   uint64
	seen   bool
}

// New opens the screen.
func New(o pages.Open) pages.Page {
	m := &Model{first: o.Node}
	m.table = components.NewTable(components.TableOptions[store.TrunkUse]{
		Show:    func(r store.TrunkUse, column string) (string, bool) { return m.names.Cell(r.Node, column) },
		Columns: columns(), ID: func(r store.TrunkUse) string { return r.Node },
		Fault: func(r store.TrunkUse) bool { return r.State != store.TrunkAttached }, Role: role, Sort: sortKeys(), Order: "-used,node",
		Draw: draw, Drawn: map[string]int{"gauge": 12},
		Empty: "No node has a trunk or ENABLE_POD_ENI on, as far as the nodes have told.",
	})
	return m
}

// sums over the rows.
type sums struct {
	Attached, Awaited, Unsupported, Untold int
	Used, Limit                            int
	Unknown                                int // nodes that do not tell how many branches are in use
	Full                                   int
}

func sumOf(rows []store.TrunkUse) sums {
	var s sums
	for _, r := range rows {
		switch r.State {
		case store.TrunkAttached:
			s.Attached++
		case store.TrunkAwaited:
			s.Awaited++
		case store.TrunkUnsupported:
			s.Unsupported++
		case store.TrunkUntold:
			s.Untold++
		}
		if r.Used == nil {
			s.Unknown++
		} else {
			s.Used += *r.Used
		}
		if r.Limit != nil {
			s.Limit += *r.Limit
		}
		if v, ok := r.Share(); ok && v >= 1 {
			s.Full++
		}
	}
	return s
}

func columns() []query.Column[store.TrunkUse] {
	count := func(f func(store.TrunkUse) *int) func(store.TrunkUse) (float64, bool) {
		return func(r store.TrunkUse) (float64, bool) {
			if v := f(r); v != nil {
				return float64(*v), true
			}
			return 0, false
		}
	}
	return []query.Column[store.TrunkUse]{
		{Name: "node", Header: "NODE", Title: "name of the node", Least: 16, Text: func(r store.TrunkUse) string { return show.Safe(r.Node) }},
		{Name: "type", Header: "TYPE", Title: "instance type", Drop: 3, Text: func(r store.TrunkUse) string { return show.OrUnknown(show.Safe(r.Type)) }},
		{Name: "zone", Header: "ZONE", Title: "availability zone", Drop: 5, Wide: true, Text: func(r store.TrunkUse) string { return show.OrUnknown(show.Safe(r.Zone)) }},
		{Name: "state", Header: "STATE", Title: "attached, awaited, not supported (by the type), off (a trunk without ENABLE_POD_ENI), not told (by the original)", Text: func(r store.TrunkUse) string { return string(r.State) }},
		{Name: "used", Header: "BRANCHES", Title: "branch ENIs in use, of those the type can have", Right: true,
			Text: func(r store.TrunkUse) string { return show.Int(r.Used) + "/" + show.Int(r.Limit) }, Number: store.TrunkUse.Share},
		{Name: "gauge", Header: "", Title: "share of the branch ENIs in use", Drop: 4, Text: func(r store.TrunkUse) string { return show.Int(r.Used) }, Number: store.TrunkUse.Share},
		{Name: "left", Header: "LEFT", Title: "branch ENIs that can still be made", Right: true, Drop: 2, Text: func(r store.TrunkUse) string { return show.Int(r.Left()) }, Number: count(store.TrunkUse.Left)},
		{Name: "eni", Header: "TRUNK", Title: "the trunk network interface", Drop: 6, Text: func(r store.TrunkUse) string { return show.OrUnknown(show.Safe(r.ENI)) }},
		{Name: "advertised", Header: "ADVERTISED", Title: "capacity of vpc.amazonaws.com/pod-eni on the Node object", Right: true, Wide: true, Drop: 7,
			Text: func(r store.TrunkUse) string { return show.Int(r.Advertised) }, Number: count(func(r store.TrunkUse) *int { return r.Advertised })},
	}
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "node", Title: "name"}, {Key: "s", Column: "state", Title: "state"},
		{Key: "i", Column: "used", Title: "used"}, {Key: "w", Column: "left", Title: "left"}, {Key: "t", Column: "type", Title: "type"},
	}
}

func role(r store.TrunkUse, column string) theme.Role {
	if r.Stale {
		return theme.Stale
	}
	v, known := r.Share()
	switch {
	case column == "state" && r.State == store.TrunkAttached:
		return theme.Good
	case column == "state":
		return theme.Warn
	case (column == "used" || column == "left") && known && v >= 1:
		return theme.Bad
	case column == "eni", column == "type":
		return theme.Faint
	}
	return theme.Text
}

func draw(s components.Style, r store.TrunkUse, _ string, width int) string {
	v, ok := r.Share()
	if !ok {
		return components.Blank(width)
	}
	return components.Gauge(s, width, 1, components.Part{Value: v, Role: theme.BarUsed})
}

// Name is that of the screen.
func (m *Model) Name() string { return "trunks" }

// Title is the breadcrumb.
func (m *Model) Title() string { return "Trunks" }

// Busy is never: the app takes filters.
func (m *Model) Busy() bool { return false }

// Focus samples the rows that are seen.
func (m *Model) Focus(pages.Context) source.Focus {
	f := source.Focus{}
	for _, r := range m.table.Visible() {
		f.Visible = append(f.Visible, r.Node)
	}
	return f
}

// Row is the node under the cursor.
func (m *Model) Row(c pages.Context) any {
	if r, ok := m.table.Row(); ok {
		if n := c.View.Node(r.Node); n != nil {
			return n.NodeIPAM
		}
	}
	return nil
}

// List is the table of nodes while it has the focus.
func (m *Model) List() components.List {
	if m.frame.Focus == paneNodes {
		return m.table
	}
	return nil
}
