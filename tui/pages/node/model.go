// Package node is the screen of one node: its ENIs on the left, its warm pool, what the
// daemon will do next and why on the right.
package node

import (
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/pages"
	"cnictl/tui/pages/events"
	"cnictl/tui/pages/names"
	"cnictl/tui/pages/panes"
	"cnictl/tui/pages/reading"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Panes of the screen.
const (
	paneENIs = iota
	panePool
)

// Model is the screen of one node.
type Model struct {
	name   string
	docs   reading.Documents
	events events.List
	table  *components.Table[eniRow]
	scroll prose.Scroll
	frame  panes.Frame
}

// New opens the screen of a node.
func New(o pages.Open) pages.Page {
	m := &Model{name: o.Node, docs: reading.NewDocuments("node", o.Node, "")}
	m.table = components.NewTable(components.TableOptions[eniRow]{
		Columns: columns(), ID: func(r eniRow) string { return r.ID },
		Fault: func(r eniRow) bool { return r.Excluded || r.Held },
		Role:  role, Sort: sortKeys(), Order: "dev",
		Draw: draw, Drawn: map[string]int{"pool": 12},
		Limits: map[string]components.Limit{"eni": {Most: 21, Narrow: 21}}, // the longest id EC2 has
		Empty:  "This node has no network interface that the daemon manages.",
	})
	return m
}

// eniRow is one ENI as the table shows it.
type eniRow struct {
	introspect.NodeENI
	Slots    *int // that the ENI has; nil: not known
	PerSlot  int  // addresses of one
	Held     bool // being detached
	Gone     bool // EC2 does not show it any more
	Detailed bool // CIDRs are known
}

// rows joins what the documents and the summary tell of the node's ENIs. Before the
// document is read, and where it cannot be, the summary's counts stand alone.
func rows(enis []introspect.NodeENI, s *introspect.Summary) []eniRow {
	slots, perSlot := map[int]*int{}, map[int]int{}
	flags := map[string][]string{}
	if s != nil {
		for _, c := range s.Cards {
			slots[c.Card] = c.SlotsPerENI
			if c.Mode == introspect.ModePrefix {
				perSlot[c.Card] = 16
			}
		}
		for _, e := range s.ENIs {
			flags[e.ID] = e.Flags
		}
	}
	var out []eniRow
	add := func(e introspect.NodeENI, detailed bool) {
		r := eniRow{NodeENI: e, Slots: slots[e.Card], PerSlot: max(perSlot[e.Card], 1), Detailed: detailed}
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
	case enis != nil:
		for _, e := range enis {
			add(e, true)
		}
	case s != nil:
		for _, e := range s.ENIs {
			add(introspect.NodeENI{ID: e.ID, Card: e.Card, Device: e.Device, Total: e.Total, Assigned: e.Assigned, Cooling: e.Cooling, Free: e.Free}, false)
		}
	}
	return out
}

// flagsOf lists what is special about an ENI.
func flagsOf(r eniRow) string {
	out := names.ENIFlags(r.NodeENI)
	for _, f := range []struct {
		on   bool
		name string
	}{{r.Held, introspect.ENIFlagHeld}, {r.Gone, introspect.ENIFlagQuarantined}} {
		switch {
		case f.on && out == "":
			out = f.name
		case f.on:
			out += "," + f.name
		}
	}
	return out
}

// slotsUsed is how many slots hold an address or a prefix.
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

func columns() []query.Column[eniRow] {
	number := func(f func(eniRow) int) func(eniRow) (float64, bool) {
		return func(r eniRow) (float64, bool) { return float64(f(r)), true }
	}
	return []query.Column[eniRow]{
		{Name: "dev", Header: "DEV", Title: "network card and device index", Text: func(r eniRow) string { return strconv.Itoa(r.Card) + "." + strconv.Itoa(r.Device) },
			Number: number(func(r eniRow) int { return r.Card*1000 + r.Device })},
		{Name: "eni", Header: "ENI", Title: "network interface", Least: 21, Text: func(r eniRow) string { return show.Safe(r.ID) }},
		{Name: "used", Header: "USED", Title: "addresses that pods have, of those held", Right: true,
			Text:   func(r eniRow) string { return show.Count(r.Assigned) + "/" + show.Count(r.Total) },
			Number: number(func(r eniRow) int { return r.Assigned })},
		{Name: "cooling", Header: "COOL", Title: "addresses that rest after their last pod", Right: true, Drop: 2,
			Text: func(r eniRow) string { return show.Count(r.Cooling) }, Number: number(func(r eniRow) int { return r.Cooling })},
		{Name: "slots", Header: "SLOTS", Title: "slots that hold an address or a prefix, of those there are", Right: true, Drop: 3,
			Text: slotsUsed, Number: number(func(r eniRow) int { return len(r.CIDRs) })},
		{Name: "pool", Header: "POOL", Title: "used, cooling and free of what the slots can hold", Drop: 5,
			Text: func(r eniRow) string { return show.Count(r.Free) + " free" }, Number: number(func(r eniRow) int { return r.Free })},
		{Name: "flags", Header: "FLAGS", Title: "primary, trunk, efa, excluded (gives pods nothing), held (being detached), quarantined (EC2 does not show it)", Drop: 4, Text: flagsOf},
		{Name: "subnet", Header: "SUBNET", Title: "subnet of the interface", Drop: 6, Least: 24, Text: func(r eniRow) string { return show.OrUnknown(show.Safe(r.SubnetID)) }},
		{Name: "table", Header: "TABLE", Title: "route table, 254 is main", Right: true, Wide: true, Drop: 7, Text: func(r eniRow) string { return show.Int(r.RouteTable) }},
	}
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "eni", Title: "name"}, {Key: "d", Column: "dev", Title: "device"},
		{Key: "i", Column: "used", Title: "used"}, {Key: "w", Column: "pool", Title: "free"}, {Key: "c", Column: "cooling", Title: "cooling"},
	}
}

func role(r eniRow, column string) theme.Role {
	switch {
	case r.Excluded || r.Held || r.Gone:
		return theme.Faint
	case column == "used" && r.Total > 0 && r.Free == 0 && !r.Trunk:
		return theme.Warn
	case column == "cooling" && r.Cooling == 0, column == "flags", column == "subnet":
		return theme.Faint
	}
	return theme.Text
}

func draw(s components.Style, r eniRow, column string, width int) string {
	whole := r.Total
	if r.Slots != nil {
		whole = max(whole, *r.Slots*r.PerSlot)
	}
	return components.Gauge(s, width, float64(whole),
		components.Part{Value: float64(r.Assigned), Role: theme.BarUsed},
		components.Part{Value: float64(r.Cooling), Role: theme.BarCooling},
		components.Part{Value: float64(r.Free), Role: theme.BarFree})
}

// Name is that of the screen.
func (m *Model) Name() string { return "node" }

// Title is the breadcrumb.
func (m *Model) Title() string { return show.Safe(m.name) }

// Busy is never: the app takes filters.
func (m *Model) Busy() bool { return false }

// Focus samples the node first.
func (m *Model) Focus(pages.Context) source.Focus { return source.Focus{Open: m.name} }

// Row is the ENI under the cursor, or the node beside the pool.
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

// List is the table of ENIs while it has the focus.
func (m *Model) List() components.List {
	if m.frame.Focus == paneENIs {
		return m.table
	}
	return nil
}
