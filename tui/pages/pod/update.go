package pod

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes"
	"cnictl/doctor/collect/watched"
	"cnictl/doctor/evidence"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Do:
		return m.do(c, msg.Action)
	case pages.Mouse:
		m.frame.Mouse(msg, c.Clock)
		return nil
	case pages.Loaded:
		node, ref := m.docs.Node, m.ref
		if m.docs.Take(msg) {
			m.events.Take(msg.Detail.Events)
			m.name()
			m.judge(c)
		}
		if m.find.Take(msg) {
			m.found()
		}
		if m.docs.Node == node && m.ref == ref {
			return nil
		} // a node or pod found here is read at once
	}
	return m.ask(c, false)
}

// judge finds out why the pod has no network, as cnictl doctor pod does, from what was read.
func (m *Model) judge(c pages.Context) {
	m.finding = ""
	n, pod := c.View.Node(m.docs.Node), kube(m.docs.Last.Pods, m.ref, m.ip)
	if n == nil || pod == nil || pod.Phase != "Pending" || pod.HostNetwork {
		return
	}
	name := pages.PodName(pod.Namespace, pod.Name)
	if f := causes.OfPod(watched.OfNode(n, m.docs.Last, evidence.Scope{Pod: evidence.Pod(name)}, c.Now), name); f != nil {
		m.finding = f.Code
	}
}

// locate searches for the node of the pod or address, among the nodes read so far and in
// Kubernetes.
func (m *Model) locate(c pages.Context, every time.Duration) tea.Cmd {
	if m.docs.Node != "" {
		return nil
	}
	if m.looked != c.View.Generation {
		m.looked = c.View.Generation
		m.docs.Node = c.View.Home(m.ref, m.ip)
	}
	find := watch.PodQuery{Namespace: m.ref.Namespace, Name: m.ref.Name}
	if m.ref.Name == "" {
		find.IP = m.ip
	}
	if m.docs.Node != "" || find.Name == "" && !find.IP.IsValid() {
		return nil
	}
	return m.find.Ask(c, watch.WantClusterPods, every, watch.Query{Find: find})
}

// found sets the node that Kubernetes reports.
func (m *Model) found() {
	p := m.listed()
	if p == nil || m.docs.Node != "" {
		return
	}
	m.docs.Node = p.Node
	if m.ref.Name == "" && !p.HostNetwork {
		m.ref = p.PodRef
	}
}

// name finds the pod that has the address, so that its wiring is requested too.
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
	locate := m.locate(c, 10*time.Second)
	n := c.View.Node(m.docs.Node)
	want := watch.WantENIs | watch.WantPods | watch.WantEvents
	if m.ref.Name != "" {
		want |= watch.WantPod | watch.WantFailures | watch.WantPlan
	}
	if pages.Upstream(n) {
		want = watch.WantENIs | watch.WantPods
	}
	every := pages.Pace(c, n)
	if now {
		every = 0
	}
	return tea.Batch(locate, m.docs.Ask(c, want, every, watch.Query{Pod: m.ref, Events: m.events.After()}))
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		if to, ok := pages.Jump(m, c, keymap.ToENI); ok {
			return pages.Go(to)
		}
		return nil
	case keymap.Refresh:
		return m.ask(c, true)
	}
	m.frame.Work(action, c.Clock)
	return nil
}

// At implements pages.Pointing: the pod, or the address if no pod has it.
func (m *Model) At(c pages.Context) (pages.Object, bool) {
	at := pages.Object{Node: m.docs.Node}
	if m.ref.Name != "" {
		at.Pod = m.ref.Namespace + "/" + m.ref.Name
	} else if m.ip.IsValid() {
		at.IP = m.ip.String()
	}
	if held := places(m.docs.ENIs(c.View), m.ref, m.ip); len(held) > 0 {
		at.ENI = held[0].ENI.ID
	}
	return at, true
}
