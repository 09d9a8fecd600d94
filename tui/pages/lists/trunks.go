package lists

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

// Trunks is the screen of security groups for pods: nodes with a trunk ENI, the branch ENIs in use,
// pods that wait for one, and nodes that cannot have any.
type Trunks struct {
	table  *components.Table[*trunk]
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

// NewTrunks opens the screen.
func NewTrunks(o pages.Open) pages.Page {
	m := &Trunks{first: o.Node, kube: pages.NewDocuments("trunks", "", "pods")}
	m.table = components.NewTable(components.TableOptions[*trunk]{
		Show:    func(r *trunk, column string) (string, bool) { return m.names.Cell(r.Node, column) },
		Columns: trunkColumns(), ID: func(r *trunk) string { return r.Node },
		Fault: func(r *trunk) bool { return r.State != document.TrunkAttached || r.full() || r.waiting() > 0 },
		Role:  trunkRole, Sort: trunkKeys(), Order: "-used,node",
		Draw: gauge, Drawn: map[string]int{"gauge": 12},
		Limits: map[string]components.Limit{"type": {Most: 20, Narrow: 15}, "trunk": {Most: 21, Narrow: 21}}, // the longest that EC2 has
		Sparse: map[string]string{"waiting": "0"},
		Empty:  "No nodes with a trunk or ENABLE_POD_ENI.",
		Rows:   "nodes",
	})
	m.frame.Bodies = []components.Body{m.table, &m.scroll}
	return m
}

// trunk is a node for which trunks matter.
type trunk struct {
	document.TrunkItem
	Stale bool
	IPv6  bool // its pods have IPv6 addresses
}

// trunksOf returns the nodes for which trunks matter, with how many of the listed pods wait on each.
func trunksOf(v *store.View, pods *watch.ClusterPods) []*trunk {
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
	var out []*trunk
	for _, n := range v.Nodes {
		if t, ok := inventory.TrunkOf(n); ok {
			if name := n.Metadata.Name; pods != nil && (pods.Nodes == nil || pods.Nodes[name]) {
				t.Waiting = new(waits[name])
			}
			out = append(out, &trunk{t, n.State != document.StateLive, n.Summary != nil && n.Summary.IPFamily == "ipv6"})
		}
	}
	return out
}

// share returns the share of the branch ENIs in use.
func (r *trunk) share() (float64, bool) { return inventory.BranchShare(r.TrunkItem) }

// waiting returns how many pods are known to wait for a branch ENI.
func (r *trunk) waiting() int {
	if r.Waiting == nil {
		return 0
	}
	return *r.Waiting
}

// full reports whether the node can have no more branch ENIs.
func (r *trunk) full() bool { v, ok := r.share(); return ok && v >= 1 }

func (r *trunk) percent() (float64, bool) { return inventory.BranchPercent(r.TrunkItem) }

// trunkSums are totals over the rows.
type trunkSums struct {
	Attached, Pending, Unsupported, NotReported int
	Used, Limit                                 int
	Unknown                                     int // nodes that do not report how many branches are in use
	Full, Waiting                               int
}

func sumTrunks(rows []*trunk) trunkSums {
	var s trunkSums
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
		if r.full() {
			s.Full++
		}
		s.Waiting += r.waiting()
	}
	return s
}

func trunkColumns() []query.Column[*trunk] {
	all := query.Of(tables.Trunks(), func(r *trunk) document.TrunkItem { return r.TrunkItem })
	out, _ := query.Pick(all, "node", "type", "zone", "state", "used", "left", "waiting", "trunk", "advertised")
	out[0].Least = 16
	gauge := query.Column[*trunk]{
		Name: "gauge", Title: "share of the branch ENIs in use", Drop: 4,
		Text: func(r *trunk) string { return show.Int(r.BranchUsed) }, Number: (*trunk).percent,
	}
	return slices.Insert(out, 5, gauge)
}

func trunkKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "node", Title: "name"}, {Key: "s", Column: "state", Title: "state"},
		{Key: "i", Column: "used", Title: "used"}, {Key: "w", Column: "left", Title: "room"},
		{Key: "p", Column: "waiting", Title: "waiting"}, {Key: "t", Column: "type", Title: "type"},
	}
}

func trunkRole(r *trunk, column string) draw.Role {
	if r.Stale {
		return draw.Stale
	}
	v, known := r.share()
	switch {
	case column == "state" && r.State == document.TrunkAttached:
		return draw.Good
	case column == "state":
		return draw.Warn
	case (column == "used" || column == "left") && known && v >= 1:
		return draw.Bad
	case column == "waiting" && r.waiting() > 0:
		return draw.Warn
	case column == "trunk", column == "type":
		return draw.Faint
	}
	return draw.Text
}

func gauge(s draw.Style, r *trunk, _ string, width int) string {
	v, ok := r.share()
	if !ok {
		return draw.Blank(width)
	}
	return draw.Gauge(s, width, 1, draw.Part{Value: v, Role: draw.BarUsed})
}

// Name implements pages.Page.
func (m *Trunks) Name() string { return "trunks" }

// Title is the breadcrumb.
func (m *Trunks) Title() string { return "Trunks" }

// Focus samples the visible rows.
func (m *Trunks) Focus(pages.Context) watch.Focus {
	f := watch.Focus{}
	for _, r := range m.table.Visible() {
		f.Visible = append(f.Visible, r.Node)
	}
	return f
}

// Row is the node under the cursor.
func (m *Trunks) Row(c pages.Context) any {
	if r, ok := m.table.Row(); ok {
		if n := c.View.Node(r.Node); n != nil {
			return n.NodeIPAM
		}
	}
	return nil
}

// List is the table of nodes while that is focused.
func (m *Trunks) List() components.List { return m.frame.List() }
