package lists

import (
	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *Trunks) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	m.table.SetWide(c.Wide)
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case pages.Do:
		cmd = m.do(c, msg.Action)
	case pages.Mouse:
		if m.frame.Mouse(msg, c.Clock) {
			cmd = m.open()
		}
	case pages.Loaded:
		m.docs.Take(msg)
		if m.kube.Take(msg) {
			m.seen = false
			m.refresh(c)
		}
		return nil
	default:
		m.refresh(c)
	}
	m.aim(c)
	if len(m.table.All()) > 0 {
		cmd = tea.Batch(cmd, m.kube.Ask(c, watch.WantClusterPods, m.kube.PodsPace(), watch.Query{}))
	}
	if pages.JustMoved(c, m.since) {
		return cmd
	}
	return tea.Batch(cmd, m.docs.Ask(c, watch.WantPods, pages.Pace(c, nil), watch.Query{}))
}

func (m *Trunks) refresh(c pages.Context) {
	if c.View == nil || m.seen && c.View.Generation == m.view {
		m.table.Settle(c.Clock)
		return
	}
	m.view, m.seen = c.View.Generation, true
	m.names.Learn(c.View.Nodes)
	m.table.SetRows(trunksOf(c.View, m.kube.Last.ClusterPods), c.Clock)
	if m.first != "" && m.table.Select(m.first) {
		m.first = ""
	}
}

// aim shows the pods of the node under the cursor.
func (m *Trunks) aim(c pages.Context) {
	r, ok := m.table.Row()
	if !ok || r.Node == m.docs.Node {
		return
	}
	m.docs = pages.NewDocuments("trunks", r.Node, "")
	m.since = c.Clock
	m.scroll = components.Scroll{}
}

func (m *Trunks) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		return m.open()
	case keymap.Refresh:
		return tea.Batch(m.docs.Ask(c, watch.WantPods, 0, watch.Query{}), m.kube.Ask(c, watch.WantClusterPods, 0, watch.Query{}))
	}
	m.frame.Work(action, c.Clock)
	return nil
}

// At implements pages.Pointing: the node whose pods are shown.
func (m *Trunks) At(pages.Context) (pages.Object, bool) { return pages.Object{Node: m.docs.Node}, true }

func (m *Trunks) open() tea.Cmd {
	if r, ok := m.table.Row(); ok {
		return pages.Go(pages.Open{Screen: "node", Node: r.Node})
	}
	return nil
}
