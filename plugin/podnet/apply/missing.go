package apply

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/podnet/rules"
)

// Missing compares the wanted state of an IPv4 pod with the kernel and changes
// nothing. Each difference is a line of words. What is there besides is fine: other
// plugins of the chain add to it. The MACs and indexes of p.Pair are not looked at,
// so the pod may have been made by the original too.
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

	d := difference{pod: p}
	for _, compare := range []func(*rtnl.Conn) error{d.hostLink, d.hostRoute, d.hostRules} {
		if err := compare(host); err != nil {
			return nil, err
		}
	}
	for _, compare := range []func(*rtnl.Conn) error{d.podLink, d.podAddress, d.podRoutes, d.podNeighbour} {
		if err := compare(pod); err != nil {
			return nil, err
		}
	}
	return d.lines, nil
}

// difference collects what is not as wanted. A link that is missing is said once, and
// not again of everything that would be on it.
type difference struct {
	pod       rules.Pod
	hostEnd   rtnl.Link
	podEnd    rtnl.Link
	hasHost   bool
	hasPodEnd bool
	lines     []string
}

func (d *difference) add(line string) { d.lines = append(d.lines, line) }

func (d *difference) hostLink(host *rtnl.Conn) (err error) {
	name := d.pod.Pair.Host.Name
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
	name := d.pod.Pair.Pod.Name
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
	routes, err := host.Routes(unix.AF_INET, netnames.MainTable)
	if err != nil {
		return err
	}
	if !hasRoute(routes, d.pod.ToPod.Dst, netip.Addr{}, d.hostEnd.Index) {
		d.add("host route " + d.pod.ToPod.String() + " is missing")
	}
	return nil
}

func (d *difference) hostRules(host *rtnl.Conn) error {
	list, err := host.Rules(unix.AF_INET)
	if err != nil {
		return err
	}
	for _, want := range d.pod.Rules {
		if !hasRule(list, want) {
			d.add("host rule " + want.String() + " is missing")
		}
	}
	// One that leads elsewhere may come first, and takes the pod's packets to an ENI
	// that does not have its address.
	for _, r := range list {
		got := rules.Rule{Priority: r.Priority, From: r.From, To: r.To, Table: r.Table}
		stale := r.Priority == d.pod.StaleRule.Priority && r.From == d.pod.StaleRule.From && !r.To.IsValid()
		if stale && !wants(d.pod.Rules, got) {
			d.add("host rule " + got.String() + " is of another ENI than the pod's")
		}
	}
	return nil
}

func (d *difference) podAddress(pod *rtnl.Conn) error {
	if !d.hasPodEnd {
		return nil
	}
	list, err := pod.Addresses(unix.AF_INET)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Link == d.podEnd.Index && a.Prefix.Addr() == d.pod.Address.Addr() {
			return nil
		}
	}
	d.add("pod address " + d.pod.Address.String() + " is missing on " + d.podEnd.Name)
	return nil
}

func (d *difference) podRoutes(pod *rtnl.Conn) error {
	if !d.hasPodEnd {
		return nil
	}
	routes, err := pod.Routes(unix.AF_INET, netnames.MainTable)
	if err != nil {
		return err
	}
	if !hasRoute(routes, d.pod.Gateway.Dst, netip.Addr{}, d.podEnd.Index) {
		d.add("pod route " + d.pod.Gateway.String() + " is missing")
	}
	all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if !hasRoute(routes, all, d.pod.Default.Gateway, d.podEnd.Index) {
		d.add("pod route " + d.pod.Default.String() + " is missing")
	}
	return nil
}

// podNeighbour looks for the entry that stands in for ARP. udev and others change the
// MAC of a host link that was made before they saw it; the pod then sends to nobody.
func (d *difference) podNeighbour(pod *rtnl.Conn) error {
	if !d.hasPodEnd || !d.hasHost {
		return nil
	}
	list, err := pod.Neighbours(unix.AF_INET)
	if err != nil {
		return err
	}
	want := d.pod.Neighbour
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

func hasRoute(list []rtnl.Route, dst netip.Prefix, gateway netip.Addr, link int32) bool {
	for _, r := range list {
		if r.Dst == dst && r.Gateway == gateway && r.Link == link {
			return true
		}
	}
	return false
}

func hasRule(list []rtnl.Rule, want rules.Rule) bool {
	for _, r := range list {
		if r.Priority == want.Priority && r.From == want.From && r.To == want.To && r.Table == want.Table {
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
}

// Unreachable lists the pods to which a route leads over their host link while the rule
// is not there: systemd-networkd and others delete rules that they did not make. Pods
// without a link or route are ended, never came up, or another sandbox of the pod has
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
	leads, over := map[netip.Prefix]bool{}, map[netip.Prefix]int32{}
	for _, fam := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, err := host.Rules(fam)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if r.Priority == netnames.RuleToPod && r.Table == netnames.MainTable {
				leads[r.To] = true
			}
		}
		routes, err := host.Routes(fam, netnames.MainTable)
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			if !r.Gateway.IsValid() {
				over[r.Dst] = r.Link
			}
		}
	}
	var out []PodRoute
	for _, p := range pods {
		own := netip.PrefixFrom(p.Address, p.Address.BitLen())
		link, there := byName[p.HostLink]
		if there && over[own] == link && !leads[own] {
			out = append(out, p)
		}
	}
	return out, nil
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
