package doctor

import (
	tea "charm.land/bubbletea/v2"

	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/panes"
	"cnictl/tui/pages/reading"
	"cnictl/tui/source"
)

// Update takes one message.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	for _, t := range []components.List{m.causes, m.nodes} {
		t.SetFaults(c.FaultsOnly)
		t.SetWide(c.Wide)
	}
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case pages.Do:
		cmd = m.do(c, msg.Action)
	case pages.Mouse:
		cmd = m.mouse(c, msg)
	case pages.Loaded:
		m.docs.Take(msg)
		return nil
	default:
		m.refresh(c)
	}
	m.aim(c)
	return tea.Batch(cmd, m.ask(c))
}

// ask wants the failures of the node under the cursor.
func (m *Model) ask(c pages.Context) tea.Cmd {
	n := c.View.Node(m.docs.Node)
	if n == nil || reading.Original(n) || n.Summary == nil || reading.Resting(c, m.since) {
		return nil
	}
	return m.docs.Ask(c, source.WantFailures, reading.Pace(c, n), source.Query{})
}

func (m *Model) refresh(c pages.Context) {
	if c.View == nil {
		return
	}
	if !m.seen || c.View.Generation != m.view {
		m.view, m.seen = c.View.Generation, true
		m.names.Learn(c.View.Nodes)
		m.causes.SetRows(groupsOf(c.View, m.scope.in), c.Clock)
		m.code = ""
	}
	m.causes.Settle(c.Clock)
	m.nodes.Settle(c.Clock)
}

// aim follows the cursors: the nodes of the cause, the evidence of the node.
func (m *Model) aim(c pages.Context) {
	g, ok := m.causes.Row()
	if !ok {
		m.nodes.SetRows(nil, c.Clock)
		return
	}
	if g.Code != m.code {
		m.code = g.Code
		m.nodes.SetRows(g.Nodes, c.Clock)
	}
	a, ok := m.nodes.Row()
	if !ok || a.Name == m.docs.Node {
		return
	}
	m.docs = reading.NewDocuments("doctor", a.Name, "")
	m.since = c.Clock
	m.scroll = prose.Scroll{}
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		return m.open()
	case keymap.Refresh:
		if m.docs.Node != "" {
			return m.docs.Ask(c, source.WantFailures, 0, source.Query{})
		}
		return nil
	case keymap.Logs:
		return pages.Go(pages.Open{Screen: "logs", Node: m.docs.Node})
	case actionAll:
		m.widen()
		m.refresh(c)
		return nil
	}
	m.frame.Work(action, c.Clock, m.bodies()...)
	return nil
}

// widen looks at all nodes, and from there at what the screen was opened for, else at the
// node under the cursor.
func (m *Model) widen() {
	to := pages.Open{}
	if m.scope.title == everywhere.title {
		if to = m.opened; scopeOf(to).title == everywhere.title {
			to.Node = m.docs.Node
		}
	}
	m.scope, m.only, m.seen = scopeOf(to), to.Node, false
}

// open goes from a cause to its nodes, and from a node to its screen.
func (m *Model) open() tea.Cmd {
	if m.frame.Focus == paneCauses {
		if _, ok := m.causes.Row(); ok {
			m.frame.Focus = paneNodes
		}
		return nil
	}
	if a, ok := m.nodes.Row(); ok {
		return pages.Go(pages.Open{Screen: "node", Node: a.Name})
	}
	return nil
}

// bodies are what the panes show, in their order.
func (m *Model) bodies() []panes.Body { return []panes.Body{m.causes, m.nodes, &m.scroll} }

func (m *Model) mouse(c pages.Context, msg pages.Mouse) tea.Cmd {
	if m.frame.Mouse(msg, c.Clock, m.bodies()...) {
		return m.open()
	}
	return nil
}
