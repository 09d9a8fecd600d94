package logs

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	if m.now.Sub(c.Now) > time.Second { // a recording was rewound: what is shown lies ahead
		m.restart()
	}
	m.now = c.Now
	if c.View != nil && c.View.Generation != m.fleet {
		m.fleet = c.View.Generation
		m.names.Learn(c.View.Nodes)
	}
	switch msg := msg.(type) {
	case pages.Do:
		return m.do(c, msg.Action)
	case pages.Mouse:
		if components.Point(list{m}, msg, head, c.Clock) {
			return m.open()
		}
		return nil
	case pages.Loaded:
		m.loaded(msg)
		return nil
	}
	if len(m.tails) == 0 {
		names, also := choose(c.View)
		m.follow(names)
		m.also = also
	}
	return m.ask(c, false)
}

func (m *Model) loaded(msg pages.Loaded) {
	for _, t := range m.tails {
		if !t.docs.Take(msg) {
			continue
		}
		m.take(t, msg.Detail)
		t.silent = t.why()
		if !m.paused {
			m.show()
		}
	}
}

func (m *Model) ask(c pages.Context, now bool) tea.Cmd {
	var cmds []tea.Cmd
	for _, t := range m.tails {
		n := c.View.Node(t.docs.Node)
		every := pages.Pace(c, n)
		if len(m.tails) > 1 {
			every = max(every, 5*time.Second)
		}
		if now {
			every = 0
		}
		if cmd := t.docs.Ask(c, wanted(n), every, t.query()); cmd != nil {
			cmds = append(cmds, cmd)
		}
	}
	return tea.Batch(cmds...)
}

// wanted returns the documents that a node may have. The upstream daemon serves no log or
// events, so only Kubernetes is asked.
func wanted(n *store.Node) watch.Want {
	const cluster = watch.WantKubeEvents | watch.WantContainerLog
	if pages.Upstream(n) {
		return cluster
	}
	return cluster | watch.WantLogs | watch.WantEvents
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		return m.open()
	case keymap.Refresh:
		return m.ask(c, true)
	case keymap.Hold:
		m.paused = !m.paused
		if !m.paused {
			m.view.Follow(true)
			m.show()
		}
	case keymap.Wrap:
		m.view.Wrap = !m.view.Wrap
	case keymap.Level:
		m.level = (m.level + 1) % (logline.Error + 1)
		m.stale = true
		m.show()
	case keymap.Access:
		m.access, m.stale = !m.access, true
		m.show()
	case keymap.Repeats:
		m.each, m.stale = !m.each, true
		m.show()
	case keymap.AllLines:
		m.pod, m.eni, m.ip, m.stale = "", "", "", true
		m.show()
	default:
		m.view.Do(action)
	}
	return nil
}

// At implements pages.Pointing: the node of the line under the cursor, or of the screen.
func (m *Model) At(pages.Context) (pages.Object, bool) {
	at := pages.Object{Node: m.node, Set: m.node == ""}
	if l, ok := m.view.Line(); ok {
		at.Node = m.name(l.Value.(*line))
	}
	return at, true
}

// open opens the pod of a line, else its interface, else its node.
func (m *Model) open() tea.Cmd {
	at, ok := m.view.Line()
	if !ok {
		return nil
	}
	switch l := at.Value.(*line); {
	case l.ref.Name != "":
		return pages.Go(pages.Open{Screen: "pod", Node: m.name(l), Pod: l.ref.Namespace + "/" + l.ref.Name})
	case l.eni != "":
		return pages.Go(pages.Open{Screen: "eni", Node: m.name(l), ENI: l.eni})
	default:
		return pages.Go(pages.Open{Screen: "node", Node: m.name(l)})
	}
}

// name returns the full name of a line's node.
func (m *Model) name(l *line) string {
	for _, t := range m.tails {
		if t.docs.Node == l.Node {
			return t.docs.Node
		}
	}
	return l.Node
}
