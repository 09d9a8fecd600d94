package rules

import (
	"net/netip"
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// WorkloadPod is an address that a pod holds, and what belongs to it on the host.
type WorkloadPod struct {
	Address netip.Addr
	Owner   string // of the address; a new owner starts without history
	Hash    string // suffix of the host link's name
	Table   int    // of the pod's ENI
	// Settled: no plugin is working on the pod. Whatever is missing was removed, even if
	// the pod was never seen complete.
	Settled bool
	Branch  *Branch // nil: the pod has no branch ENI
}

// Branch is the branch ENI of a pod. Its table is the pod's Table.
type Branch struct {
	VLAN    int
	MAC     netstate.MAC
	Gateway netip.Addr
	Trunk   int32 // index of the trunk's link
}

// Objects that a [Repair] restores. They are labels of a metric.
const (
	ObjectPodLink    = "pod-link"
	ObjectPodRoute   = "pod-route"
	ObjectPodRule    = "pod-rule"
	ObjectVLANDevice = "vlan-device"
	ObjectVLANRoute  = "vlan-route"
)

// Repair is one change that restores something of a pod.
type Repair struct {
	Pod    netip.Addr // whose
	Owner  string     // the pod's
	Object string
	netstate.Change
}

// String says briefly what was missing.
func (r Repair) String() string {
	text := r.Change.String()
	if r.Object == ObjectPodLink {
		text += ", of pod address " + r.Pod.String()
	}
	return text
}

// Baseline remembers which pods were seen complete. Until a pod is settled, only pods that
// were complete once are repaired: the plugin may be working on the others. The zero value
// remembers none.
type Baseline struct {
	pods map[netip.Addr]baselinePod
}

type baselinePod struct {
	owner string
	link  int32
	mac   netstate.MAC
	ended bool // its link was missing, or had been replaced
}

// Has reports whether a pod was seen complete and has not ended.
func (w *Baseline) Has(a netip.Addr) bool {
	p, ok := w.pods[a]
	return ok && !p.ended
}

// Diff compares the pods with the kernel, and returns the repairs of what was removed, in
// the order in which they can be applied. A pod whose host link is gone or has been
// replaced has ended: nothing of it is restored. firstMAC returns the MAC address with
// which a link was created, if known.
//
// One repair may depend on another: call Diff again after the repairs.
func (w *Baseline) Diff(v netstate.State, pods []WorkloadPod, firstMAC func(index int32) (netstate.MAC, bool)) []Repair {
	x := newHostIndex(v)
	next := make(map[netip.Addr]baselinePod, len(pods))
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
		if !ok || seen && was.link != link.Index { // gone, or another sandbox's of that name
			next[p.Address] = baselinePod{owner: p.Owner, ended: true}
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
			was = baselinePod{owner: p.Owner, link: link.Index, mac: link.MAC}
			if mac, ok := firstMAC(link.Index); ok {
				was.mac = mac
			}
		}
		if link.MAC != was.mac {
			missing = append(missing, setMAC(ObjectPodLink, link, was.mac))
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

// hostIndex finds the objects of pods in a state without scanning it for each pod.
type hostIndex struct {
	podLinks map[string][]netstate.Link // veth ends by the hash in their names
	devices  map[string]netstate.Link   // of branch ENIs, by name
	routes   map[netip.Addr][]netstate.Route
	tables   map[int][]netstate.Route // of branch ENIs
	rules    map[netip.Addr][]netstate.Rule
	inLinks  []netstate.Rule // rules that match the link a packet came in by
}

func newHostIndex(v netstate.State) *hostIndex {
	x := &hostIndex{
		podLinks: map[string][]netstate.Link{}, devices: map[string]netstate.Link{}, routes: map[netip.Addr][]netstate.Route{},
		tables: map[int][]netstate.Route{}, rules: map[netip.Addr][]netstate.Rule{},
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

// hashOfLink returns the hash of the pod's name at the end of a host link's name.
func hashOfLink(l netstate.Link) (hash string, ok bool) {
	digits := len(netnames.Hash("", "", 0))
	at := len(l.Name) - digits
	if l.Kind != "veth" || at < 0 || at > netnames.MaxVethPrefix || strings.Trim(l.Name[at:], "0123456789abcdef") != "" {
		return "", false
	}
	return l.Name[at:], true
}

// linkOf finds the host link of a pod. After a change of settings two links of different
// sandboxes may have its hash: the route shows which one has the address.
func (x *hostIndex) linkOf(p *WorkloadPod) (netstate.Link, bool) {
	links := x.podLinks[p.Hash]
	if len(links) == 1 {
		return links[0], true
	}
	i := slices.IndexFunc(links, func(l netstate.Link) bool { return x.leads(p, l) })
	if i < 0 {
		return netstate.Link{}, false
	}
	return links[i], true
}

// leads reports whether the route to the pod uses a link.
func (x *hostIndex) leads(p *WorkloadPod, link netstate.Link) bool {
	return slices.ContainsFunc(x.routes[p.Address], func(r netstate.Route) bool { return r.Link == link.Index })
}

// missing lists what a pod lacks.
func (x *hostIndex) missing(p *WorkloadPod, link netstate.Link) (out []Repair) {
	if !link.Up() {
		out = append(out, setUp(ObjectPodLink, link))
	}
	strict := p.Branch != nil && strings.HasPrefix(link.Name, netnames.BranchVethPrefix)
	if p.Branch != nil {
		lacks, device := x.missingDevice(p)
		if out = append(out, lacks...); !device {
			return out // the rest needs it
		}
	}
	to := netstate.Direct(netstate.Only(p.Address), link.Index, netnames.MainTable)
	if strict {
		to.Table = p.Table
	}
	if !slices.ContainsFunc(x.routes[p.Address], to.SamePath) {
		out = append(out, putRoute(ObjectPodRoute, link, to))
	}
	if strict {
		return append(out, x.missingInLinks(p, link)...)
	}
	for _, c := range DiffPodRules(x.rules[p.Address], p.Address, PodRules(p.Address, p.Table)) {
		out = append(out, Repair{Object: ObjectPodRule, Change: c})
	}
	return out
}

func setUp(object string, link netstate.Link) Repair {
	return Repair{Object: object, Change: netstate.Change{Do: netstate.SetUp, Link: link}}
}

func setMAC(object string, link netstate.Link, mac netstate.MAC) Repair {
	link.MAC = mac
	return Repair{Object: object, Change: netstate.Change{Do: netstate.SetMAC, Link: link}}
}

func putRoute(object string, link netstate.Link, r netstate.Route) Repair {
	return Repair{Object: object, Change: netstate.Change{Do: netstate.PutRoute, Link: link, Route: r}}
}

// missingDevice lists what the device of a branch ENI lacks, and whether it exists.
func (x *hostIndex) missingDevice(p *WorkloadPod) (out []Repair, there bool) {
	b := p.Branch
	name := netnames.VLANDevice(b.VLAN)
	device, there := x.devices[name]
	if !there {
		made := netstate.Link{Name: name, VLAN: b.VLAN, Parent: b.Trunk, MAC: b.MAC}
		return []Repair{{Object: ObjectVLANDevice, Change: netstate.Change{Do: netstate.AddVLAN, Link: made}}}, false
	}
	if device.MAC != b.MAC {
		out = append(out, setMAC(ObjectVLANDevice, device, b.MAC))
	}
	if !device.Up() {
		out = append(out, setUp(ObjectVLANDevice, device))
	}
	for _, r := range []netstate.Route{
		netstate.Direct(netstate.Only(b.Gateway), device.Index, p.Table), netstate.Default(b.Gateway, device.Index, p.Table),
	} {
		if !slices.ContainsFunc(x.tables[p.Table], r.SamePath) {
			out = append(out, putRoute(ObjectVLANRoute, device, r))
		}
	}
	return out, true
}

// missingInLinks lists the strict-mode rules that a branch pod lacks.
func (x *hostIndex) missingInLinks(p *WorkloadPod, link netstate.Link) (out []Repair) {
	for _, in := range []string{netnames.VLANDevice(p.Branch.VLAN), link.Name} {
		want := netstate.Rule{Priority: netnames.RuleBranch, InLink: in, Table: p.Table, IPv6: !p.Address.Is4()}
		if !slices.Contains(x.inLinks, want) {
			out = append(out, Repair{Object: ObjectPodRule, Change: netstate.Change{Do: netstate.AddRule, Rule: want}})
		}
	}
	return out
}
