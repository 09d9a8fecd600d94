package apply

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// Missing compares the wanted state of a pod with the kernel and changes nothing. Each
// difference is a line of words. What is there besides is fine: other plugins of the
// chain add to it. The MACs and indexes of the pairs are not looked at, so the pod may
// have been made by upstream too; nor are the trunk and the MAC of a VLAN device
// that are zero, nor its gateway.
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
		d := difference{wanted: &p.Interfaces[i], family: unix.AF_INET}
		if d.wanted.Address.Addr().Is6() {
			d.family = unix.AF_INET6
		}
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

// missingVLAN compares the device of a branch ENI and the routes out of it.
func missingVLAN(host *rtnl.Conn, p rules.Pod) (lines []string, _ error) {
	v := p.VLAN
	device, found, err := host.LinkByName(v.Name)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return []string{"host link " + v.Name + " is missing"}, nil
	case device.Flags&unix.IFF_UP == 0:
		lines = append(lines, "host link "+v.Name+" is down")
	}
	if v.MAC != (rules.MAC{}) && device.MAC != netstate.MAC(v.MAC) {
		lines = append(lines, "host link "+v.Name+" has the MAC "+device.MAC.String()+" of another branch ENI, not "+v.MAC.String())
	}
	fam, all := uint8(unix.AF_INET), netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if p.Interfaces[0].Address.Addr().Is6() {
		fam, all = unix.AF_INET6, netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	routes, err := host.Routes(fam, v.Table)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if r.Dst == all && r.Link == device.Index {
			return lines, nil
		}
	}
	return append(lines, "the default route of table "+strconv.Itoa(v.Table)+" through "+v.Name+" is missing"), nil
}

// difference collects what is not as wanted. A link that is missing is said once, and
// not again of everything that would be on it.
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
	case d.hostEnd.Flags&unix.IFF_UP == 0:
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
	case d.podEnd.Flags&unix.IFF_UP == 0:
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
	routes, err := host.Routes(d.family, tableOf(d.wanted.ToPod))
	if err != nil {
		return err
	}
	if !hasRoute(routes, d.wanted.ToPod.Dst, netip.Addr{}, d.hostEnd.Index) {
		d.add("host route " + d.wanted.ToPod.String() + " is missing")
	}
	return nil
}

func tableOf(r rules.Route) int {
	if r.Table == 0 {
		return netnames.MainTable
	}
	return r.Table
}

func (d *difference) hostRules(host *rtnl.Conn) error {
	list, err := host.Rules(d.family)
	if err != nil {
		return err
	}
	for _, want := range d.wanted.Rules {
		if !hasRule(list, want) {
			d.add("host rule " + want.String() + " is missing")
		}
	}
	// One that leads elsewhere may come first, and takes the pod's packets to an ENI
	// that does not have its address.
	stale := d.wanted.StaleRule
	for _, r := range list {
		got := rules.Rule{Priority: r.Priority, From: r.From, To: r.To, Table: r.Table}
		if r.Priority == stale.Priority && r.From == stale.From && !r.To.IsValid() && !wants(d.wanted.Rules, got) {
			d.add("host rule " + got.String() + " belongs to another ENI than the pod's")
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

// podRule is of an interface that is not the first.
func (d *difference) podRule(pod *rtnl.Conn) error {
	if d.wanted.Rule.Priority == 0 {
		return nil
	}
	list, err := pod.Rules(d.family)
	if err != nil {
		return err
	}
	if !hasRule(list, d.wanted.Rule) {
		d.add("pod rule " + d.wanted.Rule.String() + " is missing")
	}
	return nil
}

func (d *difference) podRoutes(pod *rtnl.Conn) error {
	if !d.hasPodEnd {
		return nil
	}
	routes, err := pod.Routes(d.family, tableOf(d.wanted.Gateway))
	if err != nil {
		return err
	}
	if !hasRoute(routes, d.wanted.Gateway.Dst, netip.Addr{}, d.podEnd.Index) {
		d.add("pod route " + d.wanted.Gateway.String() + " is missing")
	}
	all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if d.family == unix.AF_INET6 {
		all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	if !hasRoute(routes, all, d.wanted.Default.Gateway, d.podEnd.Index) {
		d.add("pod route " + d.wanted.Default.String() + " is missing")
	}
	return nil
}

// podNeighbour looks for the entry that stands in for ARP. udev and others change the
// MAC of a host link that was made before they saw it; the pod then sends to nobody.
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

func hasRoute(list []netstate.Route, dst netip.Prefix, gateway netip.Addr, link int32) bool {
	for _, r := range list {
		if r.Dst == dst && r.Gateway == gateway && r.Link == link {
			return true
		}
	}
	return false
}

func hasRule(list []netstate.Rule, want rules.Rule) bool {
	for _, r := range list {
		if r.Priority == want.Priority && r.From == want.From && r.To == want.To && r.InLink == want.InLink && r.Table == want.Table {
			return true
		}
	}
	return false
}

func wants(list []rules.Rule, r rules.Rule) bool {
	for _, want := range list {
		if want == r {
			return true
		}
	}
	return false
}

// PodRoute is what the host needs to reach a pod.
type PodRoute struct {
	Address  netip.Addr
	HostLink string
	VLAN     int // of the pod's branch ENI; 0: it has none
}

// strict reports whether the pod was made in strict mode, as the host link's name tells.
func (p *PodRoute) strict() bool {
	return p.VLAN != 0 && strings.HasPrefix(p.HostLink, netnames.BranchVethPrefix)
}

// table has the route to the pod.
func (p *PodRoute) table() int {
	if !p.strict() {
		return netnames.MainTable
	}
	table, _ := netnames.BranchTable(p.VLAN)
	return table
}

// rules are those without which the pod is cut off. That from an ordinary pod is not
// among them: the table of its ENI is not known here.
func (p *PodRoute) rules() []rules.Rule {
	own := netip.PrefixFrom(p.Address, p.Address.BitLen())
	toPod := rules.Rule{Priority: netnames.RuleToPod, To: own, Table: netnames.MainTable}
	if p.VLAN == 0 {
		return []rules.Rule{toPod}
	}
	table, _ := netnames.BranchTable(p.VLAN)
	if !p.strict() {
		return []rules.Rule{toPod, {Priority: netnames.RuleFromPod, From: own, Table: table}}
	}
	return []rules.Rule{
		{Priority: netnames.RuleBranch, InLink: netnames.VLANDevice(p.VLAN), Table: table},
		{Priority: netnames.RuleBranch, InLink: p.HostLink, Table: table},
	}
}

// Unreachable lists the pods to which a route leads over their host link while a rule,
// or the VLAN device, is not there: systemd-networkd and others delete rules that they did
// not make. Pods without a link or route are ended, never came up, or another sandbox of
// the pod has the link.
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
	known := map[uint8][]netstate.Rule{}
	over := map[int]map[netip.Prefix]int32{} // links by table and destination
	for _, fam := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if known[fam], err = host.Rules(fam); err != nil {
			return nil, err
		}
	}
	reached := func(p *PodRoute, link int32) (bool, error) {
		table := p.table()
		if over[table] == nil {
			over[table] = map[netip.Prefix]int32{}
			for _, fam := range []uint8{unix.AF_INET, unix.AF_INET6} {
				list, err := host.Routes(fam, table)
				if err != nil {
					return false, err
				}
				for _, r := range list {
					if !r.Gateway.IsValid() {
						over[table][r.Dst] = r.Link
					}
				}
			}
		}
		return over[table][netip.PrefixFrom(p.Address, p.Address.BitLen())] == link, nil
	}
	var out []PodRoute
	for i := range pods {
		p := &pods[i]
		link, there := byName[p.HostLink]
		if !there {
			continue
		}
		led, err := reached(p, link)
		if err != nil {
			return nil, err
		}
		if led && !p.whole(known, byName) {
			out = append(out, *p)
		}
	}
	return out, nil
}

// whole reports whether the pod's rules and VLAN device are there.
func (p *PodRoute) whole(known map[uint8][]netstate.Rule, links map[string]int32) bool {
	if _, there := links[netnames.VLANDevice(p.VLAN)]; p.VLAN != 0 && !there {
		return false
	}
	fam := uint8(unix.AF_INET)
	if p.Address.Is6() {
		fam = unix.AF_INET6
	}
	for _, want := range p.rules() {
		if !hasRule(known[fam], want) {
			return false
		}
	}
	return true
}

// DropLink deletes a host link that the host's route to a pod address goes through,
// and with it the pod's end. A link of that name without the route belongs to a
// younger sandbox of the pod and stays.
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
	fam := uint8(unix.AF_INET)
	if address.Is6() {
		fam = unix.AF_INET6
	}
	routes, err := host.Routes(fam, netnames.MainTable)
	if err != nil {
		return false, err
	}
	if !hasRoute(routes, netip.PrefixFrom(address, address.BitLen()), netip.Addr{}, link.Index) {
		return false, nil
	}
	var b rtnl.Batch
	b.LinkDel(link.Index)
	b.Tolerate(unix.ENODEV) // its namespace went meanwhile
	return true, host.Do(&b)
}
