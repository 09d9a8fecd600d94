package subnets

import (
	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	m.table.SetWide(c.Wide)
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case pages.Do:
		cmd = m.do(c, msg.Action)
	case pages.Mouse:
		if m.frame.Mouse(msg, c.Clock) {
			cmd = m.open()
		}
	default:
		m.refresh(c)
	}
	m.aim()
	return cmd
}

func (m *Model) refresh(c pages.Context) {
	if c.View == nil {
		return
	}
	if !m.seen || c.View.Generation != m.view {
		m.view, m.seen, m.of = c.View.Generation, true, ""
	}
	m.table.SetRows(rowsOf(c.View, m.forecasts, c.Now), c.Clock)
	m.table.Settle(c.Clock)
	if m.first != "" && m.table.Select(m.first) {
		m.first = ""
	}
}

// aim lays out the map of the subnet under the cursor.
func (m *Model) aim() {
	r, ok := m.table.Row()
	if !ok || r.ID == m.of {
		return
	}
	m.of, m.board.cells, m.whole = r.ID, inventory.SubnetCells(r.SubnetUse), nil
	m.board.move(0)
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	if action == keymap.In {
		return m.open()
	}
	m.frame.Work(action, c.Clock)
	return nil
}

// open moves from a subnet to its map, or opens the node that holds the block.
func (m *Model) open() tea.Cmd {
	_, ok := m.table.Row()
	if !ok {
		return nil
	}
	if m.frame.Focus == paneSubnets {
		m.frame.Focus = paneMap
		return nil
	}
	if len(m.board.cells) > 0 {
		if b := m.board.cells[m.board.cursor]; b.Node != "" {
			return pages.Go(pages.Open{Screen: "node", Node: b.Node})
		}
	}
	return nil
}
