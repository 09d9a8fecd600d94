package store

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// addresses are what a node held when its addresses were last read, kept small: a fleet has a
// hundred thousand.
type addresses struct {
	all   []address
	names string    // NAMESPACE/NAME of their pods, each between line feeds
	at    time.Time // of the read, by the reader's clock; zero if never
}

// address is a single address, or all addresses of a prefix that no pod has had.
type address struct {
	addr  [16]byte
	since uint32 // when it entered its state, in seconds; 0 = unknown
	name  uint32 // end of its pod's name in names; 0 = none
	eni   uint16 // index into places
	bits  uint8  // of its secondary IP or prefix
	state state
}

type state uint8

const (
	stateFree state = iota
	stateAssigned
	stateCooling
	stateRest // the remaining addresses of a prefix, which have no record
)

// addressesOf extracts the addresses from ENIs.
func addressesOf(enis []introspect.NodeENI, at time.Time) addresses {
	out := addresses{at: at}
	var names strings.Builder
	for i, e := range enis {
		for _, c := range e.CIDRs {
			of := address{eni: uint16(min(i, 1<<16-1)), bits: uint8(c.CIDR.Bits())}
			for _, a := range c.Addresses {
				h := of
				h.addr, h.since = a.Address.As16(), seconds(a.AssignedAt)
				switch a.State {
				case introspect.AddressAssigned:
					h.state = stateAssigned
				case introspect.AddressCooling:
					h.state, h.since = stateCooling, seconds(a.UnassignedAt)
				default:
					h.since = seconds(a.UnassignedAt)
				}
				if a.PodName != "" && a.State == introspect.AddressAssigned { // a moved pod is where it is now
					names.WriteString("\n" + a.PodNamespace + "/" + a.PodName)
					h.name = uint32(names.Len())
				}
				out.all = append(out.all, h)
			}
			if len(c.Addresses) < c.Total {
				of.addr, of.state = c.CIDR.Masked().Addr().As16(), stateRest
				out.all = append(out.all, of)
			}
		}
	}
	out.all = slices.Clip(out.all)
	if names.Len() > 0 {
		out.names = names.String() + "\n"
	}
	return out
}

func seconds(at *time.Time) uint32 {
	if at == nil || at.Unix() <= 0 {
		return 0
	}
	return uint32(at.Unix())
}

func (h address) ip() netip.Addr { return netip.AddrFrom16(h.addr).Unmap() }

func (h address) cidr() netip.Prefix {
	p, err := h.ip().Prefix(int(h.bits))
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// contains reports whether an address belongs to the same secondary IP or prefix. Comparing
// cidr values would work, but takes ten times as long.
func (h *address) contains(addr *[16]byte) bool {
	bits := int(h.bits)
	if h.ip().Is4() {
		bits += 96
	}
	full := bits / 8
	return slices.Equal(h.addr[:full], addr[:full]) && (full == 16 || (h.addr[full]^addr[full])>>(8-bits%8) == 0)
}

// pod returns the pod that has an address.
func (a addresses) pod(h address) (ref introspect.PodRef) {
	if h.name == 0 {
		return ref
	}
	name := a.names[:h.name]
	name = name[strings.LastIndexByte(name, '\n')+1:]
	ref.Namespace, ref.Name, _ = strings.Cut(name, "/")
	return ref
}

// AddressesAt is when the node's addresses were last read; zero if never.
func (n *Node) AddressesAt() time.Time { return n.addresses.at }

// Pods appends the addresses that pods had when the node's addresses were last read.
func (n *Node) Pods(out []document.AddressItem) []document.AddressItem {
	for _, h := range n.addresses.all {
		if h.state == stateAssigned {
			out = append(out, n.item(h))
		}
	}
	return out
}

// item returns an address as lists show it.
func (n *Node) item(h address) document.AddressItem {
	pod := n.addresses.pod(h)
	out := document.AddressItem{
		Node: n.Metadata.Name, Address: h.ip().String(), Count: 1, CIDR: h.cidr(),
		State: introspect.AddressFree, PodNamespace: pod.Namespace, PodName: pod.Name,
	}
	if int(h.eni) < len(n.places) {
		e := n.places[h.eni].eni
		out.ENIID, out.Card, out.Device, out.SubnetID, out.RouteTable = e.ID, e.Card, e.Device, e.SubnetID, e.RouteTable
	}
	var since *time.Time
	if h.since > 0 {
		since = new(time.Unix(int64(h.since), 0).UTC())
	}
	switch h.state {
	case stateAssigned:
		out.State, out.AssignedAt = introspect.AddressAssigned, since
	case stateCooling:
		out.State, out.UnassignedAt = introspect.AddressCooling, since
	case stateFree:
		out.UnassignedAt = since
	case stateRest:
	}
	return out
}

// Interfaces returns the ENIs of the node as last read, with the counts of the newest sample.
// CIDRs is nil if the addresses of an ENI were never read.
func (n *Node) Interfaces() []introspect.NodeENI {
	if n.NodeIPAM.ENIs != nil || n.Summary == nil {
		return n.NodeIPAM.ENIs
	}
	out := make([]introspect.NodeENI, 0, len(n.Summary.ENIs))
	for _, s := range n.Summary.ENIs {
		e := introspect.NodeENI{}
		if i := slices.IndexFunc(n.places, func(p place) bool { return p.eni.ID == s.ID }); i >= 0 {
			e = n.places[i].eni
			e.CIDRs = n.addresses.cidrs(i)
		}
		e.ID, e.Card, e.Device, e.SubnetID = s.ID, s.Card, s.Device, cmp.Or(e.SubnetID, s.SubnetID)
		e.Total, e.Assigned, e.Cooling, e.Free = s.Total, s.Assigned, s.Cooling, s.Free
		e.Primary, e.Trunk = slices.Contains(s.Flags, introspect.ENIFlagPrimary), slices.Contains(s.Flags, introspect.ENIFlagTrunk)
		e.EFA, e.Excluded = slices.Contains(s.Flags, introspect.ENIFlagEFA), slices.Contains(s.Flags, introspect.ENIFlagExcluded)
		out = append(out, e)
	}
	return out
}

// cidrs returns the secondary IPs and prefixes of an ENI, without their addresses.
func (a addresses) cidrs(eni int) []introspect.NodeCIDR {
	out := []introspect.NodeCIDR{}
	for _, h := range a.all {
		if c := h.cidr(); int(h.eni) == eni && (len(out) == 0 || out[len(out)-1].CIDR != c) {
			out = append(out, introspect.NodeCIDR{CIDR: c})
		}
	}
	return out
}

// Holder is what holds an address.
type Holder struct {
	Node *Node
	Own  bool // the node's own address; else:
	Item document.AddressItem
}

// Holder finds the holder of an address: a pod, a node, or a pool. It uses the addresses as
// last read from each node. A nil View finds none.
func (v *View) Holder(addr netip.Addr) (best Holder, found bool) {
	if v == nil || !addr.IsValid() {
		return Holder{}, false
	}
	addr = addr.Unmap().WithZone("")
	raw, text := addr.As16(), addr.String()
	const own = 4
	rank := 0
	take := func(r int, h Holder) {
		if r > rank {
			rank, best = r, h
		}
	}
	for _, n := range v.Nodes {
		if n.Object != nil && n.Object.InternalIP == text {
			take(own, Holder{Node: n, Own: true})
		}
		for i := range n.addresses.all {
			h := &n.addresses.all[i]
			switch {
			case h.state != stateRest && h.addr != raw:
			case h.state == stateAssigned:
				return Holder{Node: n, Item: n.item(*h)}, true
			case h.state == stateCooling:
				take(3, Holder{Node: n, Item: n.item(*h)})
			case h.state == stateFree:
				take(2, Holder{Node: n, Item: n.item(*h)})
			case h.state == stateRest && rank == 0 && h.contains(&raw):
				rest := *h
				rest.addr = raw
				take(1, Holder{Node: n, Item: n.item(rest)})
			}
		}
	}
	return best, rank > 0
}

// Unread counts the nodes whose addresses were never read, except those that need no daemon.
func (v *View) Unread() (n int) {
	for range v.unread {
		n++
	}
	return n
}

// UnreadFirst returns the names of these nodes; most is the limit.
func (v *View) UnreadFirst(most int) (names []string) {
	for n := range v.unread {
		if len(names) == most {
			break
		}
		names = append(names, n.Metadata.Name)
	}
	return names
}

func (v *View) unread(yield func(*Node) bool) {
	for _, n := range v.Nodes {
		if n.addresses.at.IsZero() && !fleet.Excused(n.NodeIPAM) && !yield(n) {
			return
		}
	}
}

// PodAt is a pod and its node.
type PodAt struct {
	introspect.PodRef
	Node string
}

// PodsNamed finds pods with addresses by a prefix of their names, in one namespace or, for "",
// in any. Exact matches come first; most is the limit.
func (v *View) PodsNamed(namespace, name string, most int) []PodAt {
	if v == nil || name == "" {
		return nil
	}
	part := "/" + name
	if namespace != "" {
		part = "\n" + namespace + part
	}
	var exact, begin []PodAt
	for _, n := range v.Nodes {
		names := n.addresses.names
		for at := strings.Index(names, part); at >= 0; {
			end := at + len(part) + strings.IndexByte(names[at+len(part):], '\n')
			p := PodAt{Node: n.Metadata.Name}
			p.Namespace, p.Name, _ = strings.Cut(names[strings.LastIndexByte(names[:at+1], '\n')+1:end], "/")
			switch {
			case slices.ContainsFunc(exact, func(k PodAt) bool { return k.PodRef == p.PodRef }):
			case p.Name == name:
				exact = append(exact, p)
			case len(begin) < most && !slices.ContainsFunc(begin, func(k PodAt) bool { return k.PodRef == p.PodRef }):
				begin = append(begin, p)
			}
			next := strings.Index(names[end:], part)
			if next < 0 {
				break
			}
			at = end + next
		}
	}
	out := append(exact, begin...)
	return out[:min(len(out), most)]
}

// Home returns the node of a pod, or of an address as Holder finds it, as of the last read of
// its addresses; "" if no node has reported it. It ignores a pod without a name and an invalid
// address. A nil View finds none.
func (v *View) Home(pod introspect.PodRef, addr netip.Addr) string {
	if v == nil {
		return ""
	}
	if pod.Name != "" && pod.Namespace != "" {
		name := "\n" + pod.Namespace + "/" + pod.Name + "\n"
		for _, n := range v.Nodes {
			if strings.Contains(n.addresses.names, name) {
				return n.Metadata.Name
			}
		}
	}
	if h, ok := v.Holder(addr); ok {
		return h.Node.Metadata.Name
	}
	return ""
}
