package lists

import (
	"net/netip"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *ENI) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	m.table.SetWide(c.Wide)
	switch msg := msg.(type) {
	case pages.Do:
		return m.do(c, msg.Action)
	case pages.Mouse:
		if m.frame.Mouse(msg, c.Clock) {
			return m.open()
		}
		return nil
	case pages.Loaded:
		if m.docs.Take(msg) {
			m.refresh(c)
		}
		return nil
	}
	m.refresh(c)
	return m.docs.Ask(c, watch.WantENIs, pages.Pace(c, c.View.Node(m.node)), watch.Query{})
}

func (m *ENI) refresh(c pages.Context) {
	if c.View.Generation != m.fleet {
		m.fleet = c.View.Generation
		m.names.Learn(c.View.Nodes)
	}
	m.eni = findENI(m.docs.ENIs(c.View), m.id)
	if m.eni == nil {
		m.table.SetRows(nil, c.Clock)
		return
	}
	var cooldown time.Duration
	if n := c.View.Node(m.node); n != nil {
		cooldown, _ = fleet.Cooldown(n.Summary)
	}
	m.table.SetRows(addresses(*m.eni, cooldown, c.Now), c.Clock)
	m.table.Settle(c.Clock)
	if m.first.IsValid() && m.find() {
		m.first = netip.Addr{}
	}
}

// find puts the cursor on the address that the screen was opened for, or on the rest of
// its prefix.
func (m *ENI) find() bool {
	if m.table.Select(m.first.String()) {
		return true
	}
	for _, c := range m.eni.CIDRs {
		if c.CIDR.Contains(m.first) {
			return m.table.Select(c.CIDR.String())
		}
	}
	return false
}

func (m *ENI) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		return m.open()
	case keymap.Refresh:
		return m.docs.Ask(c, watch.WantENIs, 0, watch.Query{})
	}
	m.frame.Work(action, c.Clock)
	return nil
}

// At implements pages.Pointing: the ENI, whichever of its addresses is under the cursor.
func (m *ENI) At(pages.Context) (pages.Object, bool) {
	at := pages.Object{Node: m.node, ENI: m.id}
	if m.eni != nil {
		at.Subnet = m.eni.SubnetID
	}
	return at, true
}

// open opens the pod that has an address or, if none does, the address.
func (m *ENI) open() tea.Cmd {
	a, ok := m.table.Row()
	if !ok || a.rest() {
		return nil
	}
	o := pages.Open{Screen: "pod", Node: m.node, ENI: m.id, IP: a.Address}
	if a.PodName != "" {
		o.Pod = a.PodNamespace + "/" + a.PodName
	}
	return pages.Go(o)
}
