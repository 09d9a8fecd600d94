package node

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	m.table.SetWide(c.Wide)
	switch msg := msg.(type) {
	case pages.Do:
		return m.do(c, msg.Action)
	case pages.Mouse:
		if m.frame.Mouse(msg, c.Clock) {
			return m.open(m.frame.Focus)
		}
		return nil
	case pages.Loaded:
		if !m.docs.Take(msg) {
			return nil
		}
		m.events.Take(msg.Detail.Events)
		m.refresh(c)
		return nil
	}
	m.refresh(c)
	return m.ask(c, false)
}

// ask requests what the screen shows, or what an upstream node serves of it.
func (m *Model) ask(c pages.Context, now bool) tea.Cmd {
	n := c.View.Node(m.name)
	want := watch.WantENIs | watch.WantPlan | watch.WantEvents
	if pages.Upstream(n) {
		want = watch.WantENIs
	}
	every := pages.Pace(c, n)
	if now {
		every = 0
	}
	documents := m.docs.Ask(c, want, every, watch.Query{Events: m.events.After()})
	if !silent(n) {
		return documents
	}
	if !now {
		every = max(every, usePace)
	}
	return tea.Batch(documents, m.docs.Ask(c, watch.WantNodeUse, every, watch.Query{}))
}

// usePace is how often a node's use is requested from Kubernetes: each time lists its pods.
const usePace = 10 * time.Second

// silent reports whether a node has no summary because reading it failed or it has no
// daemon.
func silent(n *store.Node) bool {
	return n != nil && n.Summary == nil && (n.Error != nil || n.State == document.StateNoDaemon)
}

func (m *Model) refresh(c pages.Context) {
	n := c.View.Node(m.name)
	if n == nil {
		m.table.SetRows(rows(m.docs.Last.ENIs, nil), c.Clock)
		return
	}
	m.table.SetRows(rows(m.docs.ENIs(c.View), n.Summary), c.Clock)
	m.table.Settle(c.Clock)
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		return m.open(m.frame.Focus)
	case keymap.Refresh:
		return m.ask(c, true)
	case keymap.MaxPods:
		m.sizing, m.scroll = !m.sizing, components.Scroll{}
		m.frame.Focus = panePool
		return nil
	}
	m.frame.Work(action, c.Clock)
	return nil
}

// open opens the ENI under the cursor or, from the pool, the log.
func (m *Model) open(pane int) tea.Cmd {
	if pane == panePool {
		return pages.Go(pages.Open{Screen: "logs", Node: m.name})
	}
	if r, ok := m.table.Row(); ok {
		return pages.Go(pages.Open{Screen: "eni", Node: m.name, ENI: r.ID})
	}
	return nil
}

// At implements pages.Pointing: the node, with the subnet of the ENI under the cursor.
func (m *Model) At(pages.Context) (pages.Object, bool) {
	r, _ := m.table.Row()
	return pages.Object{Node: m.name, Subnet: r.SubnetID}, true
}
