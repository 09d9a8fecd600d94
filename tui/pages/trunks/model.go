// Package trunks is the screen of security groups for pods: nodes with a trunk ENI, the
// branch ENIs in use, pods that wait for one, and nodes that cannot have any.
package trunks

import (
	"cmp"
	"strconv"
	"time"

	"cnictl/daemon/api/introspect"
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
	table  *components.Table[*row]
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
	m.table = components.NewTable(components.TableOptions[*row]{
		Show:    func(r *row, column string) (string, bool) { return m.names.Cell(r.Node, column) },
		Columns: columns(), ID: func(r *row) string { return r.Node },
		Fault: func(r *row) bool { return r.State != stateAttached }, Role: role, Sort: sortKeys(), Order: "-used,node",
		Draw: draw, Drawn: map[string]int{"gauge": 12},
		Empty: "No node has a trunk or ENABLE_POD_ENI on, as far as the nodes have told.",
	})
	return m
}

// States of a node with security groups for pods.
const (
	stateAttached    = "attached"
	stateAwaited     = "awaited"       // on, supported, no trunk yet
	stateUnsupported = "not supported" // on, but the type cannot trunk
	stateOff         = "off"           // a trunk or branch capacity is there, the setting is off
	stateUntold      = "not told"      // Kubernetes shows capacity, the daemon says nothing
)

// row is one node.
type row struct {
	Node, Type, Zone string
	ENI              string
	State            string
	Used, Limit      *int
	Advertised       *int // capacity of the Node object
	Stale            bool
}

// rowsOf are the nodes that have to do with trunks.
func rowsOf(v *store.View) []*row {
	if v == nil {
		return nil
	}
	var out []*row
	for _, n := range v.Nodes {
		if r := rowOf(n); r != nil {
			out = append(out, r)
		}
	}
	return out
}

func rowOf(n *store.Node) *row {
	var t *introspect.Trunk
	r := row{Node: n.Metadata.Name, Stale: n.State != introspect.StateLive}
	if n.Summary != nil {
		t, r.Type = n.Summary.Trunk, n.Summary.InstanceType
	}
	if n.Object != nil {
		r.Type, r.Zone, r.Advertised = cmp.Or(r.Type, n.Object.InstanceType), n.Object.Zone, n.Object.BranchENIs
	}
	advertised := r.Advertised != nil && *r.Advertised > 0
	switch {
	case t == nil && !advertised, t != nil && !t.Enabled && t.ENIID == "" && !advertised:
		return nil
	case t == nil:
		r.State, r.Limit = stateUntold, r.Advertised
		return &r
	}
	r.ENI, r.Used, r.Limit = t.ENIID, t.BranchUsed, t.BranchLimit
	if r.Limit == nil {
		r.Limit = r.Advertised
	}
	switch {
	case t.ENIID != "" && t.Enabled:
		r.State = stateAttached
	case !t.Enabled:
		r.State = stateOff
	case t.Supported != nil && !*t.Supported:
		r.State = stateUnsupported
	default:
		r.State = stateAwaited
	}
	return &r
}

// share is how much of the branches is in use.
func share(r *row) (float64, bool) {
	if r.Used == nil || r.Limit == nil || *r.Limit <= 0 {
		return 0, false
	}
	return float64(*r.Used) / float64(*r.Limit), true
}

// sums over the rows.
type sums struct {
	Attached, Awaited, Unsupported, Untold int
	Used, Limit                            int
	Unknown                                int // nodes that do not tell how many branches are in use
	Full                                   int
}

func sumOf(rows []*row) sums {
	var s sums
	for _, r := range rows {
		switch r.State {
		case stateAttached:
			s.Attached++
		case stateAwaited:
			s.Awaited++
		case stateUnsupported:
			s.Unsupported++
		case stateUntold:
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
		if v, ok := share(r); ok && v >= 1 {
			s.Full++
		}
	}
	return s
}

func columns() []query.Column[*row] {
	count := func(f func(*row) *int) func(*row) (float64, bool) {
		return func(r *row) (float64, bool) {
			if v := f(r); v != nil {
				return float64(*v), true
			}
			return 0, false
		}
	}
	return []query.Column[*row]{
		{Name: "node", Header: "NODE", Title: "name of the node", Least: 16, Text: func(r *row) string { return show.Safe(r.Node) }},
		{Name: "type", Header: "TYPE", Title: "instance type", Drop: 3, Text: func(r *row) string { return show.OrUnknown(show.Safe(r.Type)) }},
		{Name: "zone", Header: "ZONE", Title: "availability zone", Drop: 5, Wide: true, Text: func(r *row) string { return show.OrUnknown(show.Safe(r.Zone)) }},
		{Name: "state", Header: "STATE", Title: "attached, awaited, not supported (by the type), off (a trunk without ENABLE_POD_ENI), not told (by the original)", Text: func(r *row) string { return r.State }},
		{Name: "used", Header: "BRANCHES", Title: "branch ENIs in use, of those the type can have", Right: true,
			Text: func(r *row) string { return show.Int(r.Used) + "/" + show.Int(r.Limit) }, Number: share},
		{Name: "gauge", Header: "", Title: "share of the branch ENIs in use", Drop: 4, Text: func(r *row) string { return show.Int(r.Used) }, Number: share},
		{Name: "left", Header: "LEFT", Title: "branch ENIs that can still be made", Right: true, Drop: 2, Text: func(r *row) string {
			if r.Used == nil || r.Limit == nil {
				return show.Unknown
			}
			return strconv.Itoa(max(*r.Limit-*r.Used, 0))
		}, Number: count(func(r *row) *int {
			if r.Used == nil || r.Limit == nil {
				return nil
			}
			left := *r.Limit - *r.Used
			return &left
		})},
		{Name: "eni", Header: "TRUNK", Title: "the trunk network interface", Drop: 6, Text: func(r *row) string { return show.OrUnknown(show.Safe(r.ENI)) }},
		{Name: "advertised", Header: "ADVERTISED", Title: "capacity of vpc.amazonaws.com/pod-eni on the Node object", Right: true, Wide: true, Drop: 7,
			Text: func(r *row) string { return show.Int(r.Advertised) }, Number: count(func(r *row) *int { return r.Advertised })},
	}
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "node", Title: "name"}, {Key: "s", Column: "state", Title: "state"},
		{Key: "i", Column: "used", Title: "used"}, {Key: "w", Column: "left", Title: "left"}, {Key: "t", Column: "type", Title: "type"},
	}
}

func role(r *row, column string) theme.Role {
	if r.Stale {
		return theme.Stale
	}
	v, known := share(r)
	switch {
	case column == "state" && r.State == stateAttached:
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

func draw(s components.Style, r *row, _ string, width int) string {
	v, ok := share(r)
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
