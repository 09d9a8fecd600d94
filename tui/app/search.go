package app

import (
	"net/netip"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// search is a request to Kubernetes for a pod by name.
type search struct {
	id              uint64 // of the request; 0 = none
	namespace, name string // namespace "" = any
}

// searchID separates the app's own requests from those of pages, which are hashes.
const searchID = 1 << 32

// podNamed opens a pod by its name or a prefix of it. Without a namespace, it searches the
// context's namespace first, then all.
func (m *Model) podNamed(text string) tea.Cmd {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "pods/"), "pod/")
	namespace, name, given := strings.Cut(text, "/")
	if !given {
		namespace, name = m.o.Namespace, text
	}
	if name == "" || strings.ContainsAny(name, "/ ") {
		return m.say(draw.Bad, "a pod is named as NAMESPACE/NAME")
	}
	found := m.view.PodsNamed(namespace, name, mostFound)
	if len(found) == 0 && !given {
		namespace = ""
		found = m.view.PodsNamed("", name, mostFound)
	}
	if len(found) > 0 && found[0].Name == name && (len(found) == 1 || found[1].Name != name) {
		return m.openPod(found[0].PodRef)
	}
	// Only Kubernetes knows pods without an address.
	m.search = search{m.search.id + 1, namespace, name}
	find := watch.Query{Find: watch.PodQuery{Namespace: namespace, Name: name}}
	ask := pages.Read{ID: searchID + m.search.id, Want: watch.WantClusterPods, Query: find}
	return tea.Batch(m.say(draw.Info, "looking for "+text), m.fx.read(ask))
}

// nodeNamed opens a node by its name, with or without the domain, or by a unique prefix of
// it. If several nodes match, it lists them.
func (m *Model) nodeNamed(text string) tea.Cmd {
	if text == "" {
		return m.say(draw.Bad, "node needs a NAME")
	}
	var known, found []string
	for _, n := range m.view.Nodes {
		name := n.Metadata.Name
		if name == text || pages.Host(name) == text {
			return m.open(pages.Open{Screen: "node", Node: name})
		}
		if known = append(known, name); strings.HasPrefix(name, text) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return m.say(draw.Warn, "no node is named "+text+didYouMean(text, known))
	case 1:
		return m.open(pages.Open{Screen: "node", Node: found[0]})
	}
	return tea.Batch(m.jump("overview"), m.filterTo("node="+text+"*"),
		m.say(draw.Info, text+" matches "+human.Plural(len(found), "node", "nodes")))
}

// mostFound limits the pods that match a name.
const mostFound = 100

// searched opens the pod that was found, or the list of matches.
func (m *Model) searched(d watch.Detail) tea.Cmd {
	s := m.search
	found := map[introspect.PodRef]bool{}
	for _, p := range m.view.PodsNamed(s.namespace, s.name, mostFound) {
		found[p.PodRef] = true
	}
	if d.ClusterPods != nil {
		for _, p := range d.ClusterPods.Pods {
			found[p.PodRef] = true
		}
	}
	var exact, all []introspect.PodRef
	for p := range found {
		all = append(all, p)
		if p.Name == s.name {
			exact = append(exact, p)
		}
	}
	m.toast = pages.Toast{}
	switch {
	case len(exact) == 1:
		return m.openPod(exact[0])
	case len(all) == 1:
		return m.openPod(all[0])
	case len(all) > 1:
		filter := "pod=" + s.namespace + "/" + s.name + "*"
		if s.namespace == "" {
			filter = "pod=*/" + s.name + "*"
		}
		return tea.Batch(m.open(pages.Open{Screen: "pods", Filter: filter}), m.say(draw.Info, s.name+" matches "+strconv.Itoa(len(all))+" pods"))
	case s.namespace == "":
		return m.say(draw.Warn, "no pod is named "+s.name+m.unread())
	}
	return m.openPod(introspect.PodRef{Namespace: s.namespace, Name: s.name}) // its screen shows what the node reports
}

func (m *Model) openPod(p introspect.PodRef) tea.Cmd {
	return m.open(pages.Open{Screen: "pod", Node: m.view.Home(p, netip.Addr{}), Pod: p.Namespace + "/" + p.Name})
}

// holderOf opens what holds an address: a pod, else the ENI or the node. If no node has
// reported the address, it opens a pod screen that searches for it.
func (m *Model) holderOf(text string) tea.Cmd {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return m.say(draw.Bad, "not an IP address: "+text)
	}
	a = a.Unmap()
	h, ok := m.view.Holder(a)
	switch {
	case !ok:
		return m.open(pages.Open{Screen: "pod", IP: a.String()})
	case h.Own:
		return tea.Batch(m.open(pages.Open{Screen: "node", Node: h.Node.Metadata.Name}),
			m.say(draw.Info, a.String()+" is the address of the node"))
	case h.Item.PodName != "":
		return m.open(pages.Open{Screen: "pod", Node: h.Node.Metadata.Name, Pod: h.Item.PodNamespace + "/" + h.Item.PodName, IP: a.String()})
	}
	return tea.Batch(m.open(pages.Open{Screen: "eni", Node: h.Node.Metadata.Name, ENI: h.Item.ENIID, IP: a.String()}),
		m.say(draw.Info, a.String()+" is "+h.Item.State+": no pod has it"))
}

// unread returns a note on how many nodes' addresses have not been read, "" if none.
func (m *Model) unread() string {
	if n := m.view.Unread(); n > 0 {
		return "; the addresses of " + human.Plural(n, "node", "nodes") + " have not been read"
	}
	return ""
}
