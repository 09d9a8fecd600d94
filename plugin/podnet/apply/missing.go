package apply

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// Missing compares the wanted state of a pod with the kernel and changes nothing. Each
// difference is one line of text. Anything additional is fine: other plugins of the chain
// add to the pod. The MACs and indexes of the pairs are not compared, so that pods set up
// by upstream match too; neither are a VLAN device's trunk and gateway, nor its MAC if the
// wanted one is zero.
func Missing(ns *Netns, p rules.Pod) (_ []string, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return nil, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	pod, err := rtnl.OpenIn(ns.fd)
	if err != nil {
		return nil, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, pod.Close()) }()

	var lines []string
	if p.VLAN != nil {
		if lines, err = missingVLAN(host, p); err != nil {
			return nil, err
		}
	}
	for i := range p.Interfaces {
		d := difference{wanted: &p.Interfaces[i], family: rtnl.Family(p.Interfaces[i].Address.Addr())}
		for _, compare := range []func(*rtnl.Conn) error{d.hostLink, d.hostRoute, d.hostRules} {
			if err := compare(host); err != nil {
				return nil, err
			}
		}
		for _, compare := range []func(*rtnl.Conn) error{d.podLink, d.podAddress, d.podRule, d.podRoutes, d.podNeighbour} {
			if err := compare(pod); err != nil {
				return nil, err
			}
		}
		lines = append(lines, d.lines...)
	}
	return lines, nil
}

// missingVLAN compares the device of a branch ENI and the default route over it.
func missingVLAN(host *rtnl.Conn, p rules.Pod) (lines []string, _ error) {
	v := p.VLAN
	device, found, err := host.LinkByName(v.Name)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return []string{"host link " + v.Name + " is missing"}, nil
	case !device.Up():
		lines = append(lines, "host link "+v.Name+" is down")
	}
	if v.MAC != (netstate.MAC{}) && device.MAC != v.MAC {
		lines = append(lines, "host link "+v.Name+" has the MAC "+device.MAC.String()+" of another branch ENI, not "+v.MAC.String())
	}
	address := p.Interfaces[0].Address.Addr()
	routes, err := host.Routes(rtnl.Family(address), v.Table)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if r.Dst == netstate.All(address) && r.Link == device.Index {
			return lines, nil
		}
	}
	return append(lines, "the default route of table "+strconv.Itoa(v.Table)+" through "+v.Name+" is missing"), nil
}

// difference collects differences. A missing link is reported once, not again for
// everything on it.
type difference struct {
	wanted    *rules.Interface
	family    uint8
	hostEnd   netstate.Link
	podEnd    netstate.Link
	hasHost   bool
	hasPodEnd bool
	lines     []string
}

func (d *difference) add(line string) { d.lines = append(d.lines, line) }

func (d *difference) hostLink(host *rtnl.Conn) (err error) {
	name := d.wanted.Pair.Host.Name
	if d.hostEnd, d.hasHost, err = host.LinkByName(name); err != nil {
		return err
	}
	switch {
	case !d.hasHost:
		d.add("host link " + name + " is missing")
	case !d.hostEnd.Up():
		d.add("host link " + name + " is down")
	}
	return nil
}

func (d *difference) podLink(pod *rtnl.Conn) (err error) {
	name := d.wanted.Pair.Pod.Name
	if d.podEnd, d.hasPodEnd, err = pod.LinkByName(name); err != nil {
		return err
	}
	switch {
	case !d.hasPodEnd:
		d.add("pod link " + name + " is missing")
	case !d.podEnd.Up():
		d.add("pod link " + name + " is down")
	case d.hasHost && d.podEnd.Parent != d.hostEnd.Index:
		d.add("pod link " + name + " is not the other end of host link " + d.hostEnd.Name)
	}
	return nil
}

func (d *difference) hostRoute(host *rtnl.Conn) error {
	if !d.hasHost {
		return nil
	}
	return d.routes(host, "host", d.hostEnd, d.wanted.ToPod)
}

// routes checks for routes of one table over a link.
func (d *difference) routes(c *rtnl.Conn, side string, link netstate.Link, want ...netstate.Route) error {
	list, err := c.Routes(d.family, want[0].Table)
	if err != nil {
		return err
	}
	for _, r := range want {
		if !slices.ContainsFunc(list, over(r, link.Index).SamePath) {
			d.add(side + " route " + r.Over(link.Name) + " is missing")
		}
	}
	return nil
}

func (d *difference) hostRules(host *rtnl.Conn) error {
	list, err := host.Rules(d.family)
	if err != nil {
		return err
	}
	for _, want := range d.wanted.Rules {
		if !slices.Contains(list, want) {
			d.add("host rule " + want.String() + " is missing")
		}
	}
	// A rule that leads elsewhere may come first, and take the pod's packets to an ENI
	// that does not have its address.
	stale := d.wanted.StaleRule
	for _, r := range list {
		own := func(want netstate.Rule) bool { return want.From == r.From && want.Table == r.Table }
		if r.Priority == stale.Priority && r.From == stale.From && !r.To.IsValid() && !slices.ContainsFunc(d.wanted.Rules, own) {
			d.add("host rule " + r.String() + " belongs to another ENI than the pod's")
		}
	}
	return nil
}

func (d *difference) podAddress(pod *rtnl.Conn) error {
	if !d.hasPodEnd {
		return nil
	}
	list, err := pod.Addresses(d.family)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Link == d.podEnd.Index && a.Prefix.Addr() == d.wanted.Address.Addr() {
			return nil
		}
	}
	d.add("pod address " + d.wanted.Address.String() + " is missing on " + d.podEnd.Name)
	return nil
}

// podRule checks the rule of interfaces after the first.
func (d *difference) podRule(pod *rtnl.Conn) error {
	if d.wanted.Rule.Priority == 0 {
		return nil
	}
	list, err := pod.Rules(d.family)
	if err != nil {
		return err
	}
	if !slices.Contains(list, d.wanted.Rule) {
		d.add("pod rule " + d.wanted.Rule.String() + " is missing")
	}
	return nil
}

func (d *difference) podRoutes(pod *rtnl.Conn) error {
	if !d.hasPodEnd {
		return nil
	}
	return d.routes(pod, "pod", d.podEnd, d.wanted.Gateway, d.wanted.Default)
}

// podNeighbour checks the static entry that replaces ARP. udev and others may change the
// MAC of a new host link; the pod's packets are then lost.
func (d *difference) podNeighbour(pod *rtnl.Conn) error {
	if !d.hasPodEnd || !d.hasHost {
		return nil
	}
	list, err := pod.Neighbours(d.family)
	if err != nil {
		return err
	}
	want := d.wanted.Neighbour
	for _, n := range list {
		if n.Link != d.podEnd.Index || n.IP != want.IP {
			continue
		}
		if n.MAC != d.hostEnd.MAC {
			d.add("pod neighbour " + n.IP.String() + " has the MAC " + n.MAC.String() + ", and host link " + d.hostEnd.Name + " has " + d.hostEnd.MAC.String())
		}
		return nil
	}
	d.add("pod neighbour " + want.IP.String() + " is missing on " + d.podEnd.Name)
	return nil
}

// PodRoute is what the host needs to reach a pod.
type PodRoute struct {
	Address  netip.Addr
	HostLink string
	VLAN     int // of the pod's branch ENI; 0 if none
}

// strict reports whether the pod was set up in strict mode, judging by the host link's
// name.
func (p *PodRoute) strict() bool {
	return p.VLAN != 0 && strings.HasPrefix(p.HostLink, netnames.BranchVethPrefix)
}

// table is the table with the route to the pod.
func (p *PodRoute) table() int {
	if !p.strict() {
		return netnames.MainTable
	}
	table, _ := netnames.BranchTable(p.VLAN)
	return table
}

// rules are the rules without which the pod is cut off. The from-pod rule of an ordinary
// pod is not included: the table of its ENI is unknown here.
func (p *PodRoute) rules() []netstate.Rule {
	own, ipv6 := netstate.Only(p.Address), p.Address.Is6()
	toPod := netstate.Rule{Priority: netnames.RuleToPod, To: own, Table: netnames.MainTable, IPv6: ipv6}
	if p.VLAN == 0 {
		return []netstate.Rule{toPod}
	}
	table, _ := netnames.BranchTable(p.VLAN)
	if !p.strict() {
		return []netstate.Rule{toPod, {Priority: netnames.RuleFromPod, From: own, Table: table, IPv6: ipv6}}
	}
	return []netstate.Rule{
		{Priority: netnames.RuleBranch, InLink: netnames.VLANDevice(p.VLAN), Table: table, IPv6: ipv6},
		{Priority: netnames.RuleBranch, InLink: p.HostLink, Table: table, IPv6: ipv6},
	}
}

// Unreachable lists the pods that have a route over their host link but lack a rule or the
// VLAN device: systemd-networkd and others delete rules that they did not add. Pods
// without a link or route have ended or never started, or another sandbox of the pod has
// the link.
func Unreachable(pods []PodRoute) (_ []PodRoute, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return nil, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	links, err := host.Links()
	if err != nil {
		return nil, err
	}
	byName := make(map[string]int32, len(links))
	for _, l := range links {
		byName[l.Name] = l.Index
	}
	var known []netstate.Rule // of both families, as are the routes
	direct := map[netip.Prefix][]netstate.Route{}
	for _, fam := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, err := host.Rules(fam)
		if err != nil {
			return nil, err
		}
		known = append(known, list...)
		routes, err := host.AllRoutes(fam)
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			if !r.Gateway.IsValid() {
				direct[r.Dst] = append(direct[r.Dst], r)
			}
		}
	}
	var out []PodRoute
	for i := range pods {
		p := &pods[i]
		link, there := byName[p.HostLink]
		own := netstate.Direct(netstate.Only(p.Address), link, p.table())
		if there && slices.ContainsFunc(direct[own.Dst], own.SamePath) && !p.complete(known, byName) {
			out = append(out, *p)
		}
	}
	return out, nil
}

// complete reports whether the pod's rules and VLAN device exist.
func (p *PodRoute) complete(known []netstate.Rule, links map[string]int32) bool {
	if _, there := links[netnames.VLANDevice(p.VLAN)]; p.VLAN != 0 && !there {
		return false
	}
	return !slices.ContainsFunc(p.rules(), func(want netstate.Rule) bool { return !slices.Contains(known, want) })
}

// DropLink deletes the host link, and with it the pod end, if the host's route to the pod
// address uses it. A link of that name without the route belongs to a newer sandbox of the
// pod and stays.
func DropLink(address netip.Addr, hostLink string) (_ bool, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return false, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	link, found, err := host.LinkByName(hostLink)
	if err != nil || !found {
		return false, err
	}
	routes, err := host.Routes(rtnl.Family(address), netnames.MainTable)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(routes, netstate.Direct(netstate.Only(address), link.Index, netnames.MainTable).SamePath) {
		return false, nil
	}
	var b rtnl.Batch
	b.LinkDel(link.Index)
	b.Tolerate(unix.ENODEV) // it went with its namespace
	return true, host.Do(&b)
}
