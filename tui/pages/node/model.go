// Package node is the screen of one node: its ENIs on the left; on the right its warm pool,
// what the daemon will do next, and why.
package node

import (
	"slices"
	"strconv"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
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
	paneENIs = iota
	panePool
)

// Model is the screen of one node.
type Model struct {
	name   string
	docs   pages.Documents
	events pages.Events
	table  *components.Table[eniRow]
	scroll components.Scroll
	frame  components.Frame
	sizing bool // the second pane shows how max-pods is calculated
}

// New opens the screen of a node.
func New(o pages.Open) pages.Page {
	m := &Model{name: o.Node, docs: pages.NewDocuments("node", o.Node, "")}
	m.table = components.NewTable(components.TableOptions[eniRow]{
		Columns: columns(), ID: func(r eniRow) string { return r.ID },
		Fault: func(r eniRow) bool { return r.Excluded || r.Held },
		Role:  role, Sort: sortKeys(), Order: "device", Show: shown,
		Draw: gauge, Drawn: map[string]int{"pool": 12},
		Limits: map[string]components.Limit{"eni": {Most: 21, Narrow: 21}}, // the longest EC2 ID
		Empty:  "No ENIs managed by the daemon on this node.",
		Rows:   "ENIs",
	})
	m.frame.Bodies = []components.Body{m.table, &m.scroll}
	return m
}

// eniRow is one ENI as the table shows it.
type eniRow struct {
	introspect.NodeENI
	Slots    *int // slots of the ENI; nil if unknown
	PerSlot  int  // addresses per slot
	Held     bool // being detached
	Gone     bool // EC2 no longer shows it
	Detailed bool // CIDRs are known
	Several  bool // the node has several cards
	Dry      bool // no ENI of the node has a free address
}

// rows joins the document of the node's ENIs with the summary. Without the document, rows
// have only the summary's counts.
func rows(all []introspect.NodeENI, s *introspect.Summary) []eniRow {
	slots, perSlot := map[int]*int{}, map[int]int{}
	flags := map[string][]string{}
	if s != nil {
		for _, c := range s.Cards {
			slots[c.Card] = c.SlotsPerENI
			if c.Mode == introspect.ModePrefix {
				perSlot[c.Card] = limits.PrefixSize
			}
		}
		for _, e := range s.ENIs {
			flags[e.ID] = e.Flags
		}
	}
	var out []eniRow
	add := func(e introspect.NodeENI, detailed bool) {
		r := eniRow{NodeENI: e, Slots: slots[e.Card], PerSlot: max(perSlot[e.Card], 1), Detailed: detailed, Several: len(slots) > 1}
		for _, f := range flags[e.ID] {
			switch f {
			case introspect.ENIFlagPrimary:
				r.Primary = true
			case introspect.ENIFlagTrunk:
				r.Trunk = true
			case introspect.ENIFlagEFA:
				r.EFA = true
			case introspect.ENIFlagExcluded:
				r.Excluded = true
			case introspect.ENIFlagHeld:
				r.Held = true
			case introspect.ENIFlagQuarantined:
				r.Gone = true
			}
		}
		out = append(out, r)
	}
	switch {
	case all != nil:
		for _, e := range all {
			add(e, true)
		}
	case s != nil:
		for _, e := range s.ENIs {
			add(introspect.NodeENI{
				ID: e.ID, Card: e.Card, Device: e.Device, Total: e.Total, Assigned: e.Assigned, Cooling: e.Cooling, Free: e.Free,
			}, false)
		}
	}
	dry := !slices.ContainsFunc(out, func(r eniRow) bool { return r.Free > 0 })
	for i := range out {
		out[i].Dry = dry
	}
	return out
}

// kindOf returns what an ENI is, and whether it is being detached or gone.
func kindOf(r eniRow) string {
	out := inventory.ENIKind(r.NodeENI)
	for _, f := range []struct {
		on   bool
		name string
	}{{r.Held, introspect.ENIFlagHeld}, {r.Gone, introspect.ENIFlagQuarantined}} {
		if f.on {
			out += "," + f.name
		}
	}
	return out
}

// slotsUsed returns how many slots hold an address or a prefix, out of how many.
func slotsUsed(r eniRow) string {
	if r.Slots == nil {
		if r.Detailed {
			return strconv.Itoa(len(r.CIDRs)) + "/" + show.Unknown
		}
		return show.Unknown
	}
	used := show.Unknown
	if r.Detailed {
		used = strconv.Itoa(len(r.CIDRs))
	}
	return used + "/" + strconv.Itoa(*r.Slots)
}

// shown puts the card before the device if the node has several cards.
func shown(r eniRow, column string) (string, bool) {
	return strconv.Itoa(r.Card) + "." + strconv.Itoa(r.Device), column == "device" && r.Several
}

// columns returns the columns of cnictl enis, and those of the screen only: slots and a gauge.
func columns() []query.Column[eniRow] {
	all := query.Of(tables.ENIs(false), func(r eniRow) document.ENIItem { return document.ENIItem{NodeENI: r.NodeENI} })
	out := query.Arrange(all,
		query.Shown{Name: "device"}, query.Shown{Name: "eni", Least: 21}, query.Shown{Name: "cooling", Drop: 4},
		query.Shown{Name: "kind", Drop: 2}, query.Shown{Name: "subnet", Drop: 6, Least: 24}, query.Shown{Name: "table", Drop: 7, Wide: true})
	for i := range out {
		switch out[i].Name {
		case "device":
			out[i].Rank = func(r eniRow) int { return r.Card*1000 + r.Device }
		case "kind":
			out[i].Text = kindOf
		}
	}
	return slices.Insert(out, 2,
		query.Column[eniRow]{Name: "ip", Header: "IP", Title: "addresses assigned to pods, of those held", Right: true,
			Text:   func(r eniRow) string { return show.Count(r.Assigned) + "/" + show.Count(r.Total) },
			Number: func(r eniRow) (float64, bool) { return float64(r.Assigned), true }},
		query.Column[eniRow]{Name: "slots", Header: "SLOTS", Title: "slots in use, out of all", Right: true, Drop: 3,
			Text: slotsUsed, Number: func(r eniRow) (float64, bool) { return float64(len(r.CIDRs)), true }},
		query.Column[eniRow]{Name: "pool", Title: "used, cooling and free of what the slots can hold", Drop: 5,
			Text:   func(r eniRow) string { return show.Count(r.Free) + " free" },
			Number: func(r eniRow) (float64, bool) { return float64(r.Free), true }},
	)
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "eni", Title: "name"}, {Key: "d", Column: "device", Title: "device"},
		{Key: "i", Column: "ip", Title: "IP"}, {Key: "w", Column: "pool", Title: "free"}, {Key: "c", Column: "cooling", Title: "cooling"},
	}
}

func role(r eniRow, column string) draw.Role {
	switch {
	case r.Excluded || r.Held || r.Gone:
		return draw.Faint
	case column == "ip" && r.Total > 0 && r.Dry && !r.Trunk:
		return draw.BadRow
	case column == "cooling" && r.Cooling == 0, column == "kind", column == "subnet":
		return draw.Faint
	}
	return draw.Text
}

func gauge(s draw.Style, r eniRow, column string, width int) string {
	p := draw.Pool{Assigned: r.Assigned, Cooling: r.Cooling, Free: r.Free, Limit: r.Total}
	if r.Slots != nil {
		p.Limit = max(p.Limit, *r.Slots*r.PerSlot)
	}
	return p.Gauge(s, width)
}

// Name implements pages.Page.
func (m *Model) Name() string { return "node" }

// Title is the breadcrumb.
func (m *Model) Title() string { return m.name }

// Focus samples the node first.
func (m *Model) Focus(pages.Context) watch.Focus { return watch.Focus{Open: m.name} }

// Row is the ENI under the cursor, or the node if the pool is focused.
func (m *Model) Row(c pages.Context) any {
	if m.frame.Focus == paneENIs {
		if r, ok := m.table.Row(); ok {
			return r.NodeENI
		}
	}
	if n := c.View.Node(m.name); n != nil {
		return n.Document()
	}
	return nil
}

// List is the table of ENIs while that is focused.
func (m *Model) List() components.List { return m.frame.List() }
