package subnets

import (
	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/subnets"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/parts"
)

// Update takes one message.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	m.table.SetFaults(c.FaultsOnly)
	m.table.SetWide(c.Wide)
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case pages.Do:
		cmd = m.do(c, msg.Action)
	case pages.Mouse:
		cmd = m.mouse(c, msg)
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
		m.trends.Take(c.View)
		m.view, m.seen, m.of = c.View.Generation, true, ""
	}
	m.table.SetRows(rowsOf(c.View, m.trends, c.Now), c.Clock)
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
	m.of, m.cells = r.ID, subnets.Blocks(r.SubnetUse)
	m.cursor = max(min(m.cursor, len(m.cells)-1), 0)
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	if action == keymap.In {
		return m.open()
	}
	if m.frame.Do(action) {
		return nil
	}
	if m.frame.Focus == paneSubnets {
		m.table.Do(action, c.Clock)
		return nil
	}
	page := m.wide * 8
	by, ok := map[string]int{
		keymap.Up: -m.wide, keymap.Down: m.wide, keymap.PageUp: -page, keymap.PageDown: page,
		keymap.HalfUp: -page / 2, keymap.HalfDown: page / 2, keymap.First: -len(m.cells), keymap.Last: len(m.cells),
		actionPrev: -1, actionNext: 1,
	}[action]
	if ok {
		m.move(m.cursor + by)
	}
	return nil
}

func (m *Model) move(to int) { m.cursor = max(min(to, len(m.cells)-1), 0) }

// open goes from a subnet to its map, and from a block to the node that has it.
func (m *Model) open() tea.Cmd {
	r, ok := m.table.Row()
	if !ok {
		return nil
	}
	if m.frame.Focus == paneSubnets {
		m.frame.Focus = paneMap
		return nil
	}
	if len(m.cells) > 0 {
		if b, ok := subnets.BlockAt(r.SubnetUse, m.cursor); ok && b.Node != "" {
			return parts.Go(pages.Open{Screen: "node", Node: b.Node})
		}
	}
	return nil
}

func (m *Model) mouse(c pages.Context, msg pages.Mouse) tea.Cmd {
	pane, x, y, ok := m.frame.At(msg.X, msg.Y)
	if !ok {
		return nil
	}
	switch {
	case msg.Wheel != 0 && pane == paneSubnets:
		m.table.Wheel(msg.Wheel, c.Clock)
	case msg.Wheel != 0:
		m.move(m.cursor + msg.Wheel*m.wide)
	case msg.Click || msg.Double:
		m.frame.Focus = pane
		if pane == paneSubnets && m.table.Click(x, y, c.Clock) && msg.Double {
			return m.open()
		}
	}
	return nil
}
