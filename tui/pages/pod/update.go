package pod

import (
	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/panes"
	"cnictl/tui/pages/reading"
	"cnictl/tui/source"
)

// Update takes one message.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Do:
		return m.do(c, msg.Action)
	case pages.Mouse:
		m.frame.Mouse(msg, c.Clock, m.bodies()...)
		return nil
	case pages.Loaded:
		if m.docs.Take(msg) {
			m.events.Take(msg.Detail.Events)
			m.name()
		}
		return nil
	}
	if m.docs.Node == "" {
		m.docs.Node = c.View.Home(m.ref, m.ip)
	}
	return m.ask(c, false)
}

// name gives an address the pod that has it, so that its wiring is asked for too.
func (m *Model) name() {
	if m.ref.Name != "" || !m.ip.IsValid() {
		return
	}
	for _, p := range places(m.docs.Last.ENIs, m.ref, m.ip) {
		if p.Address.State == introspect.AddressAssigned && p.Address.PodName != "" {
			m.ref.Namespace, m.ref.Name = p.Address.PodNamespace, p.Address.PodName
		}
	}
}

func (m *Model) ask(c pages.Context, now bool) tea.Cmd {
	n := c.View.Node(m.docs.Node)
	want := source.WantENIs | source.WantPods | source.WantEvents
	if m.ref.Name != "" {
		want |= source.WantPod | source.WantFailures
	}
	if reading.Original(n) {
		want = source.WantENIs | source.WantPods
	}
	every := reading.Pace(c, n)
	if now {
		every = 0
	}
	return m.docs.Ask(c, want, every, source.Query{Pod: m.ref, Events: m.events.After()})
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	node := m.docs.Node
	switch action {
	case keymap.In, actionENI:
		if at := places(m.docs.ENIs(c.View), m.ref, m.ip); len(at) > 0 {
			return pages.Go(pages.Open{Screen: "eni", Node: node, ENI: at[0].ENI.ID})
		}
		return nil
	case actionNode:
		if node != "" {
			return pages.Go(pages.Open{Screen: "node", Node: node})
		}
		return nil
	case keymap.Refresh:
		return m.ask(c, true)
	case keymap.Logs:
		o := pages.Open{Screen: "logs", Node: node}
		if m.ref.Name != "" {
			o.Pod = m.ref.Namespace + "/" + m.ref.Name
		} else if m.ip.IsValid() {
			o.IP = m.ip.String()
		}
		return pages.Go(o)
	case keymap.Doctor:
		return pages.Go(pages.Open{Screen: "doctor", Node: node})
	}
	m.frame.Work(action, c.Clock, m.bodies()...)
	return nil
}

// bodies are what the panes show, in their order.
func (m *Model) bodies() []panes.Body {
	out := make([]panes.Body, len(m.scroll))
	for i := range m.scroll {
		out[i] = &m.scroll[i]
	}
	return out
}
