// Package pod is the screen of one pod or one address: where the address comes from, how
// the node should have set it up, what its kernel has, and the history.
package pod

import (
	"net/netip"
	"slices"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/cluster"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// Panes of the screen.
const (
	paneWiring = iota
	paneTimeline
)

// Model is the screen of one pod or address.
type Model struct {
	ref     introspect.PodRef
	ip      netip.Addr
	finding string // code of the doctor for what keeps the pod from the network; "" if nothing is known to
	docs    pages.Documents
	find    pages.Documents // from Kubernetes, while the node is unknown
	looked  uint64          // generation of the view last searched for the node
	events  pages.Events
	frame   components.Frame
	scroll  [2]components.Scroll
}

// New opens the screen of a pod, or of an address without one.
func New(o pages.Open) pages.Page {
	m := &Model{docs: pages.NewDocuments("pod", o.Node, o.Pod+" "+o.IP), find: pages.NewDocuments("pod", "", "find "+o.Pod+" "+o.IP)}
	m.frame.Bodies = []components.Body{&m.scroll[0], &m.scroll[1]}
	if o.Pod != "" {
		m.ref = pages.SplitPod(o.Pod)
	}
	m.ip, _ = netip.ParseAddr(o.IP)
	return m
}

// place is where an address is, according to a node's documents.
type place struct {
	ENI     introspect.NodeENI
	Block   netip.Prefix
	Address introspect.NodeAddress
}

// places returns where a pod's addresses, or one address, are held.
func places(enis []introspect.NodeENI, ref introspect.PodRef, ip netip.Addr) []place {
	var out []place
	for _, e := range enis {
		for _, c := range e.CIDRs {
			known := false
			for _, a := range c.Addresses {
				of := ref.Name != "" && a.PodName == ref.Name && a.PodNamespace == ref.Namespace && a.State == introspect.AddressAssigned
				if of || ip.IsValid() && a.Address == ip {
					out = append(out, place{e, c.CIDR, a})
				}
				known = known || a.Address == ip
			}
			if ip.IsValid() && !known && c.CIDR.Contains(ip) {
				out = append(out, place{e, c.CIDR, introspect.NodeAddress{Address: ip, State: introspect.AddressFree}})
			}
		}
	}
	return out
}

// kube returns the pod as reported by Kubernetes, or nil.
func kube(all []watch.Pod, ref introspect.PodRef, ip netip.Addr) *watch.Pod {
	for i, p := range all {
		switch {
		case ref.Name != "" && p.PodRef == ref:
			return &all[i]
		case ref.Name == "" && ip.IsValid() && !p.HostNetwork && slices.Contains(p.IPs, ip.String()):
			return &all[i]
		}
	}
	return nil
}

// listed returns the pod that Kubernetes was asked for, nil if it has none.
func (m *Model) listed() *watch.Pod {
	if m.find.Last.ClusterPods == nil {
		return nil
	}
	all := m.find.Last.ClusterPods.Pods
	if p := kube(all, m.ref, m.ip); p != nil || m.ref.Name != "" || len(all) == 0 {
		return p
	}
	return &all[0] // of the host network
}

// branch parses the annotation of a pod with a branch ENI, for an IP family.
func branch(annotation string, family string) (cluster.Branch, error) {
	return cluster.ParseBranch(annotation, family == "ipv6")
}

// history returns the daemon's events of a pod or an address, newest first, and the pod's
// failures.
func history(
	events []introspect.Event, failures *introspect.NodeFailures, ref introspect.PodRef, ip netip.Addr, also []place,
) (of []introspect.Event, failed []introspect.Failure) {
	mine := func(a netip.Addr) bool {
		return a.IsValid() && (a == ip || slices.ContainsFunc(also, func(p place) bool { return p.Address.Address == a }))
	}
	for _, e := range slices.Backward(events) {
		if e.Pod != nil && ref.Name != "" && *e.Pod == ref || mine(e.Address) {
			of = append(of, e)
		}
	}
	if failures != nil && ref.Name != "" {
		for _, f := range failures.Items {
			if f.Pod == ref {
				failed = append(failed, f)
			}
		}
	}
	return of, failed
}

// Name implements pages.Page.
func (m *Model) Name() string { return "pod" }

// Title is the breadcrumb.
func (m *Model) Title() string {
	if m.ref.Name != "" {
		return pages.PodName(m.ref.Namespace, m.ref.Name)
	}
	if m.ip.IsValid() {
		return m.ip.String()
	}
	return show.Unknown
}

// Focus samples the pod's node first. While that is unknown, all nodes' addresses are read.
func (m *Model) Focus(c pages.Context) watch.Focus {
	if m.docs.Node != "" {
		return watch.Focus{Open: m.docs.Node}
	}
	return watch.Focus{Maps: true, Visible: c.View.UnreadFirst(pages.UnreadAtOnce)}
}

// Row is the daemon's record of the pod, or of the address.
func (m *Model) Row(pages.Context) any {
	if m.docs.Last.Pod != nil {
		return *m.docs.Last.Pod
	}
	if at := places(m.docs.Last.ENIs, m.ref, m.ip); len(at) > 0 {
		return at[0].Address
	}
	return nil
}
