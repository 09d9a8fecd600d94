package doctor

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	m.examines = c.Examines
	for _, t := range []components.List{m.findings, m.nodes} {
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
	case pages.Examined:
		m.take(c, msg)
		m.aim(c)
		return nil
	case pages.Changed, pages.Second: // only sent to the top screen
		m.soFar(c)
		m.refresh(c)
		if m.due(c) {
			cmd = m.examine(c)
		}
	default:
		m.refresh(c)
	}
	m.aim(c)
	return tea.Batch(cmd, m.ask(c))
}

// ask requests the failures of the node under the cursor.
func (m *Model) ask(c pages.Context) tea.Cmd {
	n := c.View.Node(m.docs.Node)
	if n == nil || m.onFindings() && m.examines || pages.Upstream(n) || n.Summary == nil || pages.JustMoved(c, m.since) {
		return nil
	}
	return m.docs.Ask(c, watch.WantFailures, pages.Pace(c, n), watch.Query{})
}

func (m *Model) refresh(c pages.Context) {
	if c.View == nil {
		return
	}
	if !m.seen || c.View.Generation != m.view {
		m.view, m.seen = c.View.Generation, true
		m.names.Learn(c.View.Nodes)
		m.groups = groupsOf(c.View, m.scope.in)
		m.merge(c)
	}
	m.findings.Settle(c.Clock)
	m.nodes.Settle(c.Clock)
}

// aim shows the nodes of the finding under the cursor, and the evidence of the node under it.
func (m *Model) aim(c pages.Context) {
	r, ok := m.findings.Row()
	if !ok {
		m.nodes.SetRows(nil, c.Clock)
		return
	}
	if r.code() != m.code {
		m.code = r.code()
		m.nodes.SetRows(affectedBy(r, c.View), c.Clock)
	}
	a, ok := m.nodes.Row()
	if !ok || a.Name == m.docs.Node {
		return
	}
	m.docs = pages.NewDocuments("doctor", a.Name, "")
	m.since = c.Clock
	m.scroll = components.Scroll{}
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		return m.open()
	case keymap.Refresh:
		cmd := m.examine(c)
		if m.docs.Node != "" && !m.onFindings() {
			cmd = tea.Batch(cmd, m.docs.Ask(c, watch.WantFailures, 0, watch.Query{}))
		}
		return cmd
	case keymap.Evidence:
		m.proofs = !m.proofs
		m.unfold = m.proofs
		return nil
	case keymap.NextPane:
		m.turn(c, 1)
		return nil
	case keymap.PrevPane:
		m.turn(c, -1)
		return nil
	case keymap.AllNodes:
		m.widen()
		m.refresh(c)
		m.again(c)
		return m.examine(c)
	}
	before := m.pane
	m.frame.Bodies = m.bodies()
	m.frame.Work(action, c.Clock)
	m.focused(before)
	return nil
}

// turn moves the focus through all panes, of which only some are drawn at a time.
func (m *Model) turn(c pages.Context, by int) {
	all := []int{paneFindings, paneFinding, paneNodes, paneEvidence}
	if !c.Examines {
		all = []int{paneFindings, paneNodes, paneEvidence}
	}
	m.pane = all[(max(slices.Index(all, m.pane), 0)+by+len(all))%len(all)]
	m.beside = components.Scroll{}
}

// focused records which pane the frame has focused.
func (m *Model) focused(before int) {
	if m.frame.Focus < len(m.drawn) {
		m.pane = m.drawn[m.frame.Focus]
	}
	if m.pane != before {
		m.beside = components.Scroll{}
	}
}

// At implements pages.Pointing.
func (m *Model) At(pages.Context) (pages.Object, bool) { return pages.Object{Node: m.node()}, true }

// node returns the node under the cursor, or the first one of the finding under it.
func (m *Model) node() string {
	if !m.onFindings() {
		return m.docs.Node
	}
	if r, ok := m.findings.Row(); ok {
		if nodes := r.nodes(); len(nodes) > 0 {
			return nodes[0]
		}
	}
	return m.only
}

// widen switches to all nodes. From there it switches back to the scope that the screen was
// opened for or, if that was all nodes, to the node under the cursor.
func (m *Model) widen() {
	to := pages.Open{}
	if m.scope.title == everywhere.title {
		if to = m.opened; scopeOf(to).title == everywhere.title {
			to.Node = m.node()
		}
	}
	m.scope, m.only, m.seen = scopeOf(to), to.Node, false
}

// open shows the finding under the cursor, moves from what is only reported to its nodes, or opens
// the screen of a node.
func (m *Model) open() tea.Cmd {
	if m.onFindings() {
		r, ok := m.findings.Row()
		if !ok {
			return nil
		}
		if r.finding == nil {
			m.pane = paneNodes
			return nil
		}
		page := &findingPage{finding: r.finding, name: m.names.Short, proofs: m.proofs}
		return func() tea.Msg { return pages.Above{Page: page} }
	}
	if a, ok := m.nodes.Row(); ok {
		return pages.Go(pages.Open{Screen: "node", Node: a.Name})
	}
	return nil
}

// bodies returns the bodies of the panes drawn, in order.
func (m *Model) bodies() []components.Body {
	all := map[int]components.Body{paneFindings: m.findings, paneNodes: m.nodes, paneEvidence: &m.scroll, paneFinding: &m.beside}
	var out []components.Body
	for _, pane := range m.drawn {
		out = append(out, all[pane])
	}
	return out
}

func (m *Model) mouse(c pages.Context, msg pages.Mouse) tea.Cmd {
	before := m.pane
	m.frame.Bodies = m.bodies()
	open := m.frame.Mouse(msg, c.Clock)
	m.focused(before)
	if open {
		return m.open()
	}
	return nil
}
