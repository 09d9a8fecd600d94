package eni

import (
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/pages"
	"cnictl/tui/pages/addressmap"
	"cnictl/tui/pages/reading"
	"cnictl/tui/show"
	"cnictl/tui/theme"
)

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	n := c.View.Node(m.node)
	shown, _ := m.table.Found()
	m.frame.Need = []int{max(shown, 1) + 1}
	note := reading.Age(m.docs.Read[watch.WantENIs], c.Now, 3*reading.Pace(c, n))
	if e, failed := m.docs.Error[watch.WantENIs]; failed && m.docs.Has(watch.WantENIs) {
		note += " (" + string(e.Reason) + ")"
	}
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(s, c.Width)}, []components.Pane{
		{Title: "Addresses", Note: note, Weight: 3, Least: 3, Lines: func(s components.Style, w, h int) []string {
			if m.eni == nil {
				return components.Exactly(m.missing(c, n, w), w, h)
			}
			return m.table.Lines(s, w, h)
		}},
		{Title: "Interface", Weight: 2, Least: 3, Lines: func(s components.Style, w, h int) []string {
			sheet := prose.NewSheet(s, w)
			m.facts(s, sheet)
			return m.scroll.Window(sheet, h)
		}},
	})
}

func (m *Model) missing(c pages.Context, n *store.Node, width int) []string {
	sheet := prose.NewSheet(c.Style(), width)
	switch {
	case m.id == "":
		sheet.Add(prose.T(theme.Faint, "No ENI selected: open one from its node."))
	case m.docs.Has(watch.WantENIs):
		sheet.Add(prose.T(theme.Warn, m.node+" has no interface "+m.id+" any more."))
	default:
		sheet.Add(prose.T(theme.Faint, reading.Missing(c, &m.docs, watch.WantENIs, n, "The addresses")))
	}
	return sheet.Lines()
}

func (m *Model) header(s components.Style, width int) string {
	l := components.NewLine(s, width).Add(theme.Title, m.id).Gap(2).Add(theme.Faint, "on "+m.names.Short(m.node)).Gap(2)
	if m.eni == nil {
		return l.String()
	}
	l.Add(theme.Text, show.Count(m.eni.Assigned)+" used  "+show.Count(m.eni.Cooling)+" cooling  "+show.Count(m.eni.Free)+" free").Gap(2)
	return l.Add(theme.Info, inventory.ENIKind(*m.eni)).String()
}

// facts writes the location of the interface, the routing of its pods, and its blocks.
func (m *Model) facts(s components.Style, sheet *prose.Sheet) {
	e := m.eni
	if e == nil {
		sheet.Add(prose.T(theme.Faint, "Not read yet."))
		return
	}
	sheet.Field("card", prose.T(theme.Text, strconv.Itoa(e.Card)), prose.T(theme.Faint, "  device "), prose.T(theme.Text, strconv.Itoa(e.Device)))
	sheet.Field("subnet", prose.T(theme.Text, show.OrUnknown(e.SubnetID)))
	if e.Excluded {
		sheet.Field("pods", prose.T(theme.Warn, "get no address from it: "), prose.T(theme.Text, "its subnet is excluded"))
	}
	routing(sheet, *e)
	blocks(s, sheet, *e)
}

// routing writes the route table and the rules that point to it.
func routing(sheet *prose.Sheet, e introspect.NodeENI) {
	sheet.Head("ROUTING", "")
	if e.RouteTable == nil {
		sheet.Field("table", prose.T(theme.Faint, "not reported"))
		return
	}
	table := *e.RouteTable
	if netnames.IsMain(table) {
		sheet.Field("table", prose.T(theme.Text, strconv.Itoa(netnames.MainTable)), prose.T(theme.Faint, " (main)"))
	} else {
		sheet.Field("table", prose.T(theme.Text, strconv.Itoa(table)))
	}
	if e.Trunk {
		sheet.Field("rule "+strconv.Itoa(netnames.RuleBranch), prose.T(theme.Text, "iif <vlan of a branch pod> lookup 100 + its VLAN"))
		return
	}
	sheet.Field("rule "+strconv.Itoa(netnames.RuleToPod), prose.T(theme.Text, "to <pod> lookup main"))
	if !netnames.IsMain(table) {
		sheet.Field("rule "+strconv.Itoa(netnames.RuleFromPod), prose.T(theme.Text, "from <pod> lookup "+strconv.Itoa(table)))
	}
	if e.Card == 0 && e.Device > 0 {
		sheet.Field("rule "+strconv.Itoa(netnames.RuleFromENI), prose.T(theme.Text, "from <its primary address> lookup "+strconv.Itoa(table)))
	}
}

func blocks(s components.Style, sheet *prose.Sheet, e introspect.NodeENI) {
	if e.Prefixes == 0 {
		return
	}
	sheet.Head("PREFIXES", "")
	l := components.NewLine(s, sheet.Width())
	addressmap.Signs(l, s, false)
	sheet.Drawn(l.String())
	for _, c := range e.CIDRs {
		if !c.IsPrefix() {
			continue
		}
		cells := addressmap.Cells(c)
		if cells == nil || s.Linear {
			sheet.Row(c.CIDR.String(), 24, prose.T(theme.Text, show.Count(c.Assigned)+" used of "+show.Count(c.Total)))
			continue
		}
		name := min(20, max(sheet.Width()-18, 0))
		sheet.Drawn(components.NewLine(s, sheet.Width()).Add(theme.Text, s.Fit(c.CIDR.String(), name, false)).
			Drawn(components.Strip(s, cells), len(cells)).Add(theme.Faint, "  "+strconv.Itoa(c.Assigned)).String())
	}
}
