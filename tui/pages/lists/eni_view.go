package lists

import (
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// Lines implements pages.Page.
func (m *ENI) Lines(c pages.Context) []string {
	s := c.Style()
	n := c.View.Node(m.node)
	shown, _ := m.table.Found()
	m.frame.Need = []int{max(shown, 1) + 1}
	note := pages.Age(m.docs.Read[watch.WantENIs], c.Now, 3*pages.Pace(c, n))
	if e, failed := m.docs.Error[watch.WantENIs]; failed && m.docs.Has(watch.WantENIs) {
		note += " (" + string(e.Reason) + ")"
	}
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(s, c.Width)}, []components.Pane{
		{Title: "Addresses", Note: note, Weight: 3, Least: 3, Lines: func(s draw.Style, w, h int) []string {
			if m.eni == nil {
				return draw.Exactly(m.missing(c, n, w), w, h)
			}
			return m.table.Lines(s, w, h)
		}},
		{Title: "Interface", Weight: 2, Least: 3, Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			m.facts(s, sheet)
			return m.scroll.Window(sheet, h)
		}},
	})
}

func (m *ENI) missing(c pages.Context, n *store.Node, width int) []string {
	sheet := draw.NewSheet(c.Style(), width)
	switch {
	case m.id == "":
		sheet.Add(draw.T(draw.Faint, "No ENI selected: open one from its node."))
	case m.docs.Has(watch.WantENIs):
		sheet.Add(draw.T(draw.Warn, m.node+" has no interface "+m.id+" any more."))
	default:
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantENIs, n, "The addresses")))
	}
	return sheet.Lines()
}

func (m *ENI) header(s draw.Style, width int) string {
	l := draw.NewLine(s, width).Add(draw.Title, m.id).Gap(2).Add(draw.Faint, "on "+m.names.Short(m.node)).Gap(2)
	if m.eni == nil {
		return l.String()
	}
	l.Add(draw.Text, show.Count(m.eni.Assigned)+" used  "+show.Count(m.eni.Cooling)+" cooling  "+show.Count(m.eni.Free)+" free").Gap(2)
	return l.Add(draw.Info, inventory.ENIKind(*m.eni)).String()
}

// facts writes the location of the interface, the routing of its pods, and its blocks.
func (m *ENI) facts(s draw.Style, sheet *draw.Sheet) {
	e := m.eni
	if e == nil {
		sheet.Add(draw.T(draw.Faint, "Not read yet."))
		return
	}
	sheet.Field("card", draw.T(draw.Text, strconv.Itoa(e.Card)), draw.T(draw.Faint, "  device "), draw.T(draw.Text, strconv.Itoa(e.Device)))
	sheet.Field("subnet", draw.T(draw.Text, show.OrUnknown(e.SubnetID)))
	if e.Excluded {
		sheet.Field("pods", draw.T(draw.Warn, "get no address from it: "), draw.T(draw.Text, "its subnet is excluded"))
	}
	routing(sheet, *e)
	blocks(s, sheet, *e)
}

// routing writes the route table and the rules that point to it.
func routing(sheet *draw.Sheet, e introspect.NodeENI) {
	sheet.Head("ROUTING", "")
	if e.RouteTable == nil {
		sheet.Field("table", draw.T(draw.Faint, "not reported"))
		return
	}
	table := *e.RouteTable
	if netnames.IsMain(table) {
		sheet.Field("table", draw.T(draw.Text, strconv.Itoa(netnames.MainTable)), draw.T(draw.Faint, " (main)"))
	} else {
		sheet.Field("table", draw.T(draw.Text, strconv.Itoa(table)))
	}
	if e.Trunk {
		sheet.Field("rule "+strconv.Itoa(netnames.RuleBranch), draw.T(draw.Text, "iif <vlan of a branch pod> lookup 100 + its VLAN"))
		return
	}
	sheet.Field("rule "+strconv.Itoa(netnames.RuleToPod), draw.T(draw.Text, "to <pod> lookup main"))
	if !netnames.IsMain(table) {
		sheet.Field("rule "+strconv.Itoa(netnames.RuleFromPod), draw.T(draw.Text, "from <pod> lookup "+strconv.Itoa(table)))
	}
	if e.Card == 0 && e.Device > 0 {
		sheet.Field("rule "+strconv.Itoa(netnames.RuleFromENI), draw.T(draw.Text, "from <its primary address> lookup "+strconv.Itoa(table)))
	}
}

func blocks(s draw.Style, sheet *draw.Sheet, e introspect.NodeENI) {
	if e.Prefixes == 0 {
		return
	}
	sheet.Head("PREFIXES", "")
	l := draw.NewLine(s, sheet.Width())
	draw.AddressSigns(l, s, false)
	sheet.Drawn(l.String())
	for _, c := range e.CIDRs {
		if !c.IsPrefix() {
			continue
		}
		cells := draw.AddressCells(c)
		if cells == nil || s.Linear {
			sheet.Row(c.CIDR.String(), 24, draw.T(draw.Text, show.Count(c.Assigned)+" used of "+show.Count(c.Total)))
			continue
		}
		name := min(20, max(sheet.Width()-18, 0))
		sheet.Drawn(draw.NewLine(s, sheet.Width()).Add(draw.Text, s.Fit(c.CIDR.String(), name, false)).
			Drawn(draw.Strip(s, cells), len(cells)).Add(draw.Faint, "  "+strconv.Itoa(c.Assigned)).String())
	}
}
