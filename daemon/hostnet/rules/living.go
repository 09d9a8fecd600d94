package rules

import (
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
)

// HostLink is what the kernel has of a link.
type HostLink struct {
	Name   string
	Kind   string // "veth", "vlan", ...
	Index  int32
	Parent int32 // of a VLAN device: the link it sits on
	MAC    [6]byte
	Up     bool
}

// HostRoute is a route of the node with its link.
type HostRoute struct {
	Dst     netip.Prefix
	Gateway netip.Addr // zero: on the link
	Link    int32
	Table   int
}

// HostView is what the kernel has of pods, in one family.
type HostView struct {
	Links  []HostLink
	Routes []HostRoute // of all tables
	Rules  []IPRule
}

// LivingPod is an address that a pod holds, and what belongs to it on the host.
type LivingPod struct {
	Address netip.Addr
	Owner   string // of the address: for another one nothing was seen yet
	Hash    string // the name of the host link ends with it
	Table   int    // that of the pod's ENI
	// Settled: no plugin is at work on the pod. What is missing was taken away, even if
	// nobody saw it whole.
	Settled bool
	Branch  *Branch // nil: the pod has no branch ENI
}

// Branch is the branch ENI of a pod. Its table is the pod's Table.
type Branch struct {
	VLAN    int
	MAC     [6]byte
	Gateway netip.Addr
	Trunk   int32 // index of the trunk's link
}

// Objects that a [Repair] brings back. They are labels of a metric.
const (
	ObjectPodLink    = "pod-link"
	ObjectPodRoute   = "pod-route"
	ObjectPodRule    = "pod-rule"
	ObjectVLANDevice = "vlan-device"
	ObjectVLANRoute  = "vlan-route"
)

// Repair is one change that brings something back. Exactly one of the members behind
// Object says what.
type Repair struct {
	Pod    netip.Addr // whose
	Owner  string     // the pod's
	Object string

	Up     int32       // index of a link that goes up
	MAC    *LinkMAC    // address that a link gets back
	VLAN   *VLANDevice // device that is made again
	Route  *HostRoute  // route that is put in place of others to its destination
	Add    *IPRule     // rule
	Remove *IPRule     // a rule of the address that is not wanted, after those that are
}

// LinkMAC is an address that a link gets back: a pod knows it as that of its gateway.
type LinkMAC struct {
	Index int32
	MAC   [6]byte
}

// VLANDevice is the device of a branch ENI.
type VLANDevice struct {
	Name  string
	VLAN  int
	Trunk int32
	MAC   [6]byte
}

// String says in a few words what was missing.
func (r Repair) String() string {
	switch {
	case r.Up != 0:
		return "link of " + r.Pod.String() + " was down"
	case r.MAC != nil:
		return "link of " + r.Pod.String() + " had another MAC address"
	case r.VLAN != nil:
		return "link " + r.VLAN.Name + " was missing"
	case r.Route != nil:
		return "route to " + ipText(r.Route.Dst) + " in table " + tableName(r.Route.Table) + " was missing"
	case r.Add != nil:
		return "rule " + strings.ReplaceAll(r.Add.String(), "\t", " ") + " was missing"
	case r.Remove != nil:
		return "rule " + strings.ReplaceAll(r.Remove.String(), "\t", " ") + " was in the way"
	}
	return ""
}

// Whole remembers which pods were seen with all that belongs to them. Until a pod is
// settled, only what was whole once is brought back: the plugin may be at work on the
// rest. The zero value remembers none.
type Whole struct {
	pods map[netip.Addr]wholePod
}

type wholePod struct {
	owner string
	link  int32
	mac   [6]byte
	ended bool // its link was missed, or was another one
}

// Has reports whether a pod was seen whole and lives.
func (w *Whole) Has(a netip.Addr) bool {
	p, ok := w.pods[a]
	return ok && !p.ended
}

// Look compares the pods with what the kernel has, and returns what brings back what
// was taken away, in the order in which it can be done. A pod whose host link is gone, or
// is another than it was, has ended: nothing of it is brought back. firstMAC tells the
// address with which a link was made, where that is known.
//
// What a repair makes can be needed by another one: look again after the repairs.
func (w *Whole) Look(v HostView, pods []LivingPod, firstMAC func(index int32) ([6]byte, bool)) []Repair {
	x := newHostIndex(v)
	next := make(map[netip.Addr]wholePod, len(pods))
	shared := map[string]int{}
	for i := range pods {
		shared[pods[i].Hash]++
	}
	var out []Repair
	for i := range pods {
		p := &pods[i]
		was, known := w.pods[p.Address]
		known = known && was.owner == p.Owner
		seen := known && !was.ended
		link, ok := x.linkOf(p)
		if !ok || seen && was.link != link.Index { // gone, or of another sandbox of that name
			next[p.Address] = wholePod{owner: p.Owner, ended: true}
			continue
		}
		missing := x.missing(p, link)
		if !seen {
			settled := p.Settled && !known && (shared[p.Hash] == 1 || x.leads(p, link))
			if len(missing) > 0 && !settled {
				if known {
					next[p.Address] = was
				}
				continue
			}
			was = wholePod{owner: p.Owner, link: link.Index, mac: link.MAC}
			if mac, ok := firstMAC(link.Index); ok {
				was.mac = mac
			}
		}
		if link.MAC != was.mac {
			missing = append(missing, Repair{Object: ObjectPodLink, MAC: &LinkMAC{link.Index, was.mac}})
		}
		for j := range missing {
			missing[j].Pod, missing[j].Owner = p.Address, p.Owner
		}
		next[p.Address] = was
		out = append(out, missing...)
	}
	w.pods = next
	return out
}

// hostIndex finds things of pods in a view without walking it for each.
type hostIndex struct {
	podLinks map[string][]HostLink // veth ends by the hash in their names
	devices  map[string]HostLink   // of branch ENIs, by name
	routes   map[netip.Addr][]HostRoute
	tables   map[int][]HostRoute // of branch ENIs
	rules    map[netip.Addr][]IPRule
	inLinks  []IPRule // that look at the link a packet came in by
}

func newHostIndex(v HostView) *hostIndex {
	x := &hostIndex{
		podLinks: map[string][]HostLink{}, devices: map[string]HostLink{}, routes: map[netip.Addr][]HostRoute{},
		tables: map[int][]HostRoute{}, rules: map[netip.Addr][]IPRule{},
	}
	branches := map[int]bool{}
	for _, l := range v.Links {
		if hash, ok := hashOfLink(l); ok {
			x.podLinks[hash] = append(x.podLinks[hash], l)
		} else if vlan, ok := netnames.VLANOfDevice(l.Name); ok {
			x.devices[l.Name] = l
			table, _ := netnames.BranchTable(vlan)
			branches[table] = true
		}
	}
	for _, r := range v.Routes {
		if r.Dst.IsSingleIP() && !r.Gateway.IsValid() {
			x.routes[r.Dst.Addr()] = append(x.routes[r.Dst.Addr()], r)
		}
		if branches[r.Table] {
			x.tables[r.Table] = append(x.tables[r.Table], r)
		}
	}
	for _, r := range v.Rules {
		switch {
		case r.InLink != "":
			x.inLinks = append(x.inLinks, r)
		case r.Priority == netnames.RuleToPod && r.To.IsValid() && r.To.IsSingleIP():
			x.rules[r.To.Addr()] = append(x.rules[r.To.Addr()], r)
		case r.Priority == netnames.RuleFromPod && r.From.IsValid() && r.From.IsSingleIP():
			x.rules[r.From.Addr()] = append(x.rules[r.From.Addr()], r)
		}
	}
	return x
}

// hashOfLink is the hash of a pod's name that the name of a pod's host link ends with.
func hashOfLink(l HostLink) (hash string, ok bool) {
	digits := len(netnames.Hash("", "", 0))
	at := len(l.Name) - digits
	if l.Kind != "veth" || at < 0 || at > netnames.MaxVethPrefix || strings.Trim(l.Name[at:], "0123456789abcdef") != "" {
		return "", false
	}
	return l.Name[at:], true
}

// linkOf finds the host link of a pod. Where a setting changed there can be two of its
// hash, of two sandboxes: the route tells which is the one of the address.
func (x *hostIndex) linkOf(p *LivingPod) (HostLink, bool) {
	links := x.podLinks[p.Hash]
	if len(links) == 1 {
		return links[0], true
	}
	i := slices.IndexFunc(links, func(l HostLink) bool { return x.leads(p, l) })
	if i < 0 {
		return HostLink{}, false
	}
	return links[i], true
}

// leads reports whether the route to the pod leads to a link.
func (x *hostIndex) leads(p *LivingPod, link HostLink) bool {
	return slices.ContainsFunc(x.routes[p.Address], func(r HostRoute) bool { return r.Link == link.Index })
}

// missing lists what a pod lacks.
func (x *hostIndex) missing(p *LivingPod, link HostLink) (out []Repair) {
	if !link.Up {
		out = append(out, Repair{Object: ObjectPodLink, Up: link.Index})
	}
	strict := p.Branch != nil && strings.HasPrefix(link.Name, netnames.BranchVethPrefix)
	if p.Branch != nil {
		lacks, device := x.missingDevice(p)
		if out = append(out, lacks...); !device {
			return out // the rest needs it
		}
	}
	to := HostRoute{Dst: hostPrefix(p.Address), Link: link.Index, Table: netnames.MainTable}
	if strict {
		to.Table = p.Table
	}
	if !slices.Contains(x.routes[p.Address], to) {
		out = append(out, Repair{Object: ObjectPodRoute, Route: &to})
	}
	if strict {
		return append(out, x.missingInLinks(p, link)...)
	}
	add, remove := DiffPodRules(x.rules[p.Address], p.Address, PodRules(p.Address, p.Table))
	for i := range add {
		out = append(out, Repair{Object: ObjectPodRule, Add: &add[i]})
	}
	for i := range remove {
		out = append(out, Repair{Object: ObjectPodRule, Remove: &remove[i]})
	}
	return out
}

// missingDevice lists what the device of a branch ENI lacks, and whether it is there.
func (x *hostIndex) missingDevice(p *LivingPod) (out []Repair, there bool) {
	b := p.Branch
	name := netnames.VLANDevice(b.VLAN)
	device, there := x.devices[name]
	if !there {
		return []Repair{{Object: ObjectVLANDevice, VLAN: &VLANDevice{Name: name, VLAN: b.VLAN, Trunk: b.Trunk, MAC: b.MAC}}}, false
	}
	if device.MAC != b.MAC {
		out = append(out, Repair{Object: ObjectVLANDevice, MAC: &LinkMAC{device.Index, b.MAC}})
	}
	if !device.Up {
		out = append(out, Repair{Object: ObjectVLANDevice, Up: device.Index})
	}
	for _, r := range []HostRoute{
		{Dst: hostPrefix(b.Gateway), Link: device.Index, Table: p.Table},
		{Dst: allOf(b.Gateway), Gateway: b.Gateway, Link: device.Index, Table: p.Table},
	} {
		if !slices.Contains(x.tables[p.Table], r) {
			out = append(out, Repair{Object: ObjectVLANRoute, Route: &r})
		}
	}
	return out, true
}

// missingInLinks lists the rules of strict mode that a branch pod lacks.
func (x *hostIndex) missingInLinks(p *LivingPod, link HostLink) (out []Repair) {
	for _, in := range []string{netnames.VLANDevice(p.Branch.VLAN), link.Name} {
		want := IPRule{Priority: netnames.RuleBranch, InLink: in, Table: p.Table, IPv6: !p.Address.Is4()}
		if !slices.Contains(x.inLinks, want) {
			out = append(out, Repair{Object: ObjectPodRule, Add: &want})
		}
	}
	return out
}
