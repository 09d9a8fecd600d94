package store

import (
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/api/introspect"
)

// pods are those that have addresses of a node, as of the last reading of its addresses,
// in as little room as does: a fleet has a hundred thousand.
type pods struct {
	addrs []netip.Addr // that a pod has or had
	names string       // NAMESPACE/NAME of those that have one, between line feeds, which no name has
}

// podsOf reads them out of ENIs.
func podsOf(enis []introspect.NodeENI) pods {
	var out pods
	var names strings.Builder
	for _, e := range enis {
		for _, c := range e.CIDRs {
			for _, a := range c.Addresses {
				out.addrs = append(out.addrs, a.Address)
				if a.PodName != "" && a.State == introspect.AddressAssigned { // one that moved is where it is now
					names.WriteString("\n" + a.PodNamespace + "/" + a.PodName)
				}
			}
		}
	}
	out.addrs = slices.Clip(out.addrs)
	if names.Len() > 0 {
		out.names = names.String() + "\n"
	}
	return out
}

// Home is the node on which a pod, or an address that a pod has or had, was when the addresses of
// its node were last read; "" where nobody told of it. A pod without a name or an address
// that is not valid is not looked for. A nil View knows of none.
func (v *View) Home(pod introspect.PodRef, addr netip.Addr) string {
	if v == nil {
		return ""
	}
	name := ""
	if pod.Name != "" {
		name = "\n" + pod.Namespace + "/" + pod.Name + "\n"
	}
	for _, n := range v.Nodes {
		if name != "" && strings.Contains(n.pods.names, name) || addr.IsValid() && slices.Contains(n.pods.addrs, addr) {
			return n.Metadata.Name
		}
	}
	return ""
}
