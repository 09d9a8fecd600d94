// Package trunks is the screen of security groups for pods: nodes with a trunk ENI, the
// branch ENIs in use, pods that wait for one, and nodes that cannot have any.
package trunks

import (
	"slices"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
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
	paneNodes = iota
	panePods
)

// Model is the screen.
type Model struct {
	table  *components.Table[*row]
	frame  components.Frame
	scroll components.Scroll
	docs   pages.Documents // of the node under the cursor
	kube   pages.Documents // the pods of all nodes
	since  time.Time       // when the cursor moved to docs.Node
	first  string          // node to select first
	names  pages.NodeNames
	view   uint64
	seen   bool
}

// New opens the screen.
func New(o pages.Open) pages.Page {
	m := &Model{first: o.Node, kube: pages.NewDocuments("trunks", "", "pods")}
	m.table = components.NewTable(components.TableOptions[*row]{
		Show:    func(r *row, column string) (string, bool) { return m.names.Cell(r.Node, column) },
		Columns: columns(), ID: func(r *row) string { return r.Node },
		Fault: func(r *row) bool { return r.State != document.TrunkAttached || full(r) || waiting(r) > 0 },
		Role:  role, Sort: sortKeys(), Order: "-used,node",
		Draw: gauge, Drawn: map[string]int{"gauge": 12},
		Limits: map[string]components.Limit{"type": {Most: 20, Narrow: 15}, "trunk": {Most: 21, Narrow: 21}}, // the longest that EC2 has
		Sparse: map[string]string{"waiting": "0"},
		Empty:  "No nodes with a trunk or ENABLE_POD_ENI.",
		Rows:   "nodes",
	})
	return m
}

// row is one node.
type row struct {
	document.TrunkItem
	Stale bool
	IPv6  bool // its pods have IPv6 addresses
}

// rowsOf returns the nodes for which trunks matter, with how many of the listed pods wait on each.
func rowsOf(v *store.View, pods *watch.ClusterPods) []*row {
	if v == nil {
		return nil
	}
	waits := map[string]int{}
	if pods != nil {
		wait, _ := inventory.SplitBranchPods(pods.Pods)
		for _, p := range wait {
			waits[p.Node]++
		}
	}
	var out []*row
	for _, n := range v.Nodes {
		if t, ok := inventory.TrunkOf(n); ok {
			if name := n.Metadata.Name; pods != nil && (pods.Nodes == nil || pods.Nodes[name]) {
				t.Waiting = new(waits[name])
			}
			out = append(out, &row{t, n.State != document.StateLive, n.Summary != nil && n.Summary.IPFamily == "ipv6"})
		}
	}
	return out
}

// share returns the share of the branch ENIs in use.
func share(r *row) (float64, bool) { return inventory.BranchShare(r.TrunkItem) }

// waiting returns how many pods are known to wait for a branch ENI.
func waiting(r *row) int {
	if r.Waiting == nil {
		return 0
	}
	return *r.Waiting
}

// full reports whether the node can have no more branch ENIs.
func full(r *row) bool { v, ok := share(r); return ok && v >= 1 }

func percent(r *row) (float64, bool) { return inventory.BranchPercent(r.TrunkItem) }

// sums are totals over the rows.
type sums struct {
	Attached, Pending, Unsupported, NotReported int
	Used, Limit                                 int
	Unknown                                     int // nodes that do not report how many branches are in use
	Full, Waiting                               int
}

func sumOf(rows []*row) sums {
	var s sums
	for _, r := range rows {
		switch r.State {
		case document.TrunkAttached:
			s.Attached++
		case document.TrunkPending:
			s.Pending++
		case document.TrunkUnsupported:
			s.Unsupported++
		case document.TrunkNotReported:
			s.NotReported++
		}
		if r.BranchUsed == nil {
			s.Unknown++
		} else {
			s.Used += *r.BranchUsed
		}
		if r.BranchLimit != nil {
			s.Limit += *r.BranchLimit
		}
		if full(r) {
			s.Full++
		}
		s.Waiting += waiting(r)
	}
	return s
}

func columns() []query.Column[*row] {
	all := query.Of(tables.Trunks(), func(r *row) document.TrunkItem { return r.TrunkItem })
	out, _ := query.Pick(all, "node", "type", "zone", "state", "used", "left", "waiting", "trunk", "advertised")
	out[0].Least = 16
	gauge := query.Column[*row]{
		Name: "gauge", Title: "share of the branch ENIs in use", Drop: 4,
		Text: func(r *row) string { return show.Int(r.BranchUsed) }, Number: percent,
	}
	return slices.Insert(out, 5, gauge)
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "node", Title: "name"}, {Key: "s", Column: "state", Title: "state"},
		{Key: "i", Column: "used", Title: "used"}, {Key: "w", Column: "left", Title: "room"},
		{Key: "p", Column: "waiting", Title: "waiting"}, {Key: "t", Column: "type", Title: "type"},
	}
}

func role(r *row, column string) draw.Role {
	if r.Stale {
		return draw.Stale
	}
	v, known := share(r)
	switch {
	case column == "state" && r.State == document.TrunkAttached:
		return draw.Good
	case column == "state":
		return draw.Warn
	case (column == "used" || column == "left") && known && v >= 1:
		return draw.Bad
	case column == "waiting" && waiting(r) > 0:
		return draw.Warn
	case column == "trunk", column == "type":
		return draw.Faint
	}
	return draw.Text
}

func gauge(s draw.Style, r *row, _ string, width int) string {
	v, ok := share(r)
	if !ok {
		return draw.Blank(width)
	}
	return draw.Gauge(s, width, 1, draw.Part{Value: v, Role: draw.BarUsed})
}

// Name implements pages.Page.
func (m *Model) Name() string { return "trunks" }

// Title is the breadcrumb.
func (m *Model) Title() string { return "Trunks" }

// Focus samples the visible rows.
func (m *Model) Focus(pages.Context) watch.Focus {
	f := watch.Focus{}
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

// List is the table of nodes while that is focused.
func (m *Model) List() components.List {
	if m.frame.Focus == paneNodes {
		return m.table
	}
	return nil
}
