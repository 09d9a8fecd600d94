package lists

import (
	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/tables"
)

// ENIs is the screen of the ENIs of all nodes.
type ENIs struct {
	rows  *rows[document.ENIItem]
	names pages.NodeNames
	sums  eniSums
}

type eniSums struct{ enis, assigned, cooling, free, unread, nodes int }

// NewENIs makes the page.
func NewENIs(o pages.Open) *ENIs {
	p := &ENIs{}
	p.rows = newRows(p, components.TableOptions[document.ENIItem]{
		Columns: tables.ENIs(true), ID: func(e document.ENIItem) string { return e.ID }, Role: eniRole,
		Fault: func(e document.ENIItem) bool { return e.Excluded }, // one in full use is as it should be
		Show:  func(e document.ENIItem, column string) (string, bool) { return p.names.Cell(e.Node, column) },
		Order: "node,card,device",
		Sort: []components.SortKey{
			{Key: "n", Column: "node", Title: "node"}, {Key: "e", Column: "eni", Title: "ENI"},
			{Key: "k", Column: "kind", Title: "kind"}, {Key: "i", Column: "assigned", Title: "used"},
			{Key: "f", Column: "free", Title: "free"}, {Key: "u", Column: "subnet", Title: "subnet"},
		},
		Limits: map[string]components.Limit{"node": {Most: 40, Narrow: 13}},
		Sparse: map[string]string{"card": "0", "prefixes": "0"},
		Empty:  "no node has reported an ENI yet",
		Rows:   "ENIs",
	}, o.Filter)
	return p
}

func eniRole(e document.ENIItem, column string) draw.Role {
	switch {
	case column == "kind" && e.Excluded:
		return draw.Warn
	case column == "cooling" && e.Cooling > 0:
		return draw.BarCooling
	case column == "cooling", column == "subnet", column == "table", column == "cidrs", column == "card":
		return draw.Faint
	}
	return draw.Text
}

// Name implements pages.Page.
func (*ENIs) Name() string { return "enis" }

// Title implements pages.Page.
func (*ENIs) Title() string { return "ENIs" }

// List implements pages.Listed.
func (p *ENIs) List() components.List { return p.rows.Table }

// Focus implements pages.Page. The addresses show how many prefixes an ENI has.
func (p *ENIs) Focus(c pages.Context) watch.Focus {
	return p.rows.Focus(c, func(e document.ENIItem) string { return e.Node })
}

// Row implements pages.Page.
func (p *ENIs) Row(pages.Context) any {
	if e, ok := p.rows.Table.Row(); ok {
		return e
	}
	return nil
}

// Update implements pages.Page.
func (p *ENIs) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Do:
		return p.do(c, msg.Action)
	case pages.Mouse:
		if p.rows.Mouse(c, msg) {
			return p.open()
		}
		return nil
	case pages.Gathered:
		if also, ok := p.rows.Take(msg, c.Clock); ok {
			p.sums, _ = also.(eniSums)
		}
		return nil
	}
	p.names.Learn(c.View.Nodes)
	p.rows.Table.Settle(c.Clock)
	return nil
}

// Gather implements pages.Gatherer.
func (p *ENIs) Gather(c pages.Context) tea.Cmd {
	v := c.View
	return p.rows.Gather(c, stamp{View: v.Generation}, func(pick *components.Picker[document.ENIItem]) any {
		s := eniSums{nodes: len(v.Nodes)}
		for _, n := range v.Nodes {
			of := n.Interfaces()
			if of == nil && !fleet.Excused(n.NodeIPAM) {
				s.unread++
			}
			s.enis += len(of)
			for _, e := range of {
				s.assigned, s.cooling = s.assigned+e.Assigned, s.cooling+e.Cooling
				if e.Free < 1<<30 { // not the addresses of IPv6 prefixes
					s.free += e.Free
				}
			}
			pick.Add(inventory.ENIItems(n.Metadata.Name, of)...)
		}
		return s
	})
}

func (p *ENIs) do(c pages.Context, action string) tea.Cmd {
	if action == keymap.In {
		return p.open()
	}
	p.rows.Table.Do(action, c.Clock)
	return nil
}

func (p *ENIs) open() tea.Cmd {
	if e, ok := p.rows.Table.Row(); ok {
		return pages.Go(pages.Open{Screen: "eni", Node: e.Node, ENI: e.ID})
	}
	return nil
}

// At implements pages.Pointing.
func (p *ENIs) At(pages.Context) (pages.Object, bool) {
	e, ok := p.rows.Table.Row()
	return pages.Object{Node: e.Node, ENI: e.ID, Subnet: e.SubnetID}, ok
}

// Lines implements pages.Page.
func (p *ENIs) Lines(c pages.Context) []string {
	var notes []string
	if p.sums.unread > 0 {
		notes = append(notes, partOf(p.sums.unread, p.sums.nodes, "nodes")+" have not reported their ENIs")
	}
	sum := []draw.Span{draw.T(draw.Text, human.Plural(p.sums.enis, "ENI", "ENIs"))}
	if s := p.sums; s.enis > 0 {
		for _, part := range []struct {
			n    int
			word string
		}{{s.assigned, " used"}, {s.cooling, " cooling"}, {s.free, " free"}} {
			sum = append(sum, draw.T(draw.Faint, draw.Thousands(part.n)+part.word))
		}
	}
	return p.rows.Lines(c, sum, notes...)
}
