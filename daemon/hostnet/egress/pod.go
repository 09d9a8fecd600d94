package egress

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// Names of the link in the pod.
const (
	PodLink4 = "v4if0"
	PodLink6 = "v6if0"
)

// HostLinkPrefix begins the names of host links; 8 hexadecimal digits follow.
const HostLinkPrefix = "veth"

// Pair is the veth pair. It is determined before the pod has an address.
type Pair struct {
	Host, Pod netstate.End
	MTU       int
}

// Indexes of the host ends lie below those of the pods' own links (plugin/podnet/rules) and
// above those that the kernel assigns in sequence. On a node of 1000 pods one in 800 ADDs
// hits a taken index and draws again.
const (
	firstHostIndex = 1 << 18
	hostIndexes    = 1<<20 - 1<<18
	firstPodIndex  = 1 << 10
	podIndexes     = 1 << 10
)

// NewPair draws names, indexes and MACs from 20 random bytes.
func NewPair(v6 bool, random [20]byte, mtu int) Pair {
	number := func(at int) int32 { return int32(random[at])<<16 | int32(random[at+1])<<8 | int32(random[at+2]) }
	mac := func(at int) netstate.MAC {
		m := netstate.MAC(random[at : at+6])
		m[0] = m[0]&^1 | 2 // unicast, locally administered
		return m
	}
	name := PodLink4
	if v6 {
		name = PodLink6
	}
	return Pair{
		Host: netstate.End{Name: HostLinkPrefix + hex.EncodeToString(random[0:4]), Index: firstHostIndex + number(4)%hostIndexes, MAC: mac(7)},
		Pod:  netstate.End{Name: name, Index: firstPodIndex + number(13)%podIndexes, MAC: mac(14)}, // bytes 13 to 15; the MAC shares two of them
		MTU:  mtu,
	}
}

// Pod is the wanted state on both sides of the pair.
type Pod struct {
	Pair Pair

	HostSysctls []netstate.Sysctl
	HostAddress netstate.Address
	HostRoute   netstate.Route

	PodSysctls   []netstate.Sysctl  // in order
	PodAddresses []netstate.Address // of the link
	KernelRoute  netstate.Route     // the kernel adds it with an address; to be removed; zero: none
	PodRoutes    []netstate.Route
}

// Lease is what the IPAM plugin returned.
type Lease struct {
	Address netip.Prefix
	Gateway netip.Addr
	Routes  []netstate.Route // destination and gateway; with an invalid gateway, the lease's
}

// NewPod lays out the egress over a pair. ifName is the pod's own link, in the cluster's
// family.
func NewPod(pair Pair, lease Lease, ifName string) (Pod, error) {
	ip := lease.Address.Addr()
	if !ip.IsValid() || ip.Zone() != "" || ip.Is4In6() {
		return Pod{}, errors.New("egress address " + lease.Address.String() + " is unusable")
	}
	p := Pod{
		Pair:        pair,
		HostSysctls: []netstate.Sysctl{{Path: netstate.IPv6Setting(pair.Host.Name, "accept_ra"), Value: "0"}},
		HostRoute:   netstate.Direct(netstate.Only(ip), pair.Host.Index, netnames.MainTable),
	}
	if ip.Is6() {
		return p.v6(lease, ifName), nil
	}
	if !lease.Gateway.Is4() {
		return Pod{}, errors.New("egress address " + lease.Address.String() + " has no IPv4 gateway")
	}
	return p.v4(lease), nil
}

// v4 puts the gateway's address on each host link, and the pod sends everything there, even
// traffic to its neighbours in the range.
func (p Pod) v4(lease Lease) Pod {
	link, ip := p.Pair.Pod.Index, lease.Address.Addr()
	p.HostSysctls = append(p.HostSysctls, netstate.Sysctl{Path: "net/ipv4/ip_forward", Value: "1"})
	p.HostAddress = netstate.Address{Link: p.Pair.Host.Index, Prefix: netstate.Only(lease.Gateway), OnLink: true}
	p.PodAddresses = []netstate.Address{{Link: link, Prefix: lease.Address}}
	p.KernelRoute = netstate.Direct(lease.Address.Masked(), link, netnames.MainTable) // whatever its source
	gateway := netstate.Direct(netstate.Only(lease.Gateway), link, netnames.MainTable)
	gateway.Source = ip
	p.PodRoutes = []netstate.Route{
		gateway,
		{Dst: lease.Address.Masked(), Gateway: lease.Gateway, Source: ip, Link: link, Table: netnames.MainTable},
	}
	for _, r := range lease.Routes {
		if !r.Gateway.IsValid() {
			r.Gateway = lease.Gateway
		}
		r.Link, r.Table = link, netnames.MainTable
		p.PodRoutes = append(p.PodRoutes, r)
	}
	return p
}

// v6 disables IPv6 on the pod's own link. The pod reaches the host's end by its link-local
// address.
func (p Pod) v6(lease Lease, ifName string) Pod {
	link, gateway := p.Pair.Pod.Index, p.Pair.Host.MAC.LinkLocal()
	p.HostAddress = netstate.Address{Link: p.Pair.Host.Index, Prefix: netip.PrefixFrom(gateway, 64), NoDAD: true}
	p.PodSysctls = []netstate.Sysctl{
		{Path: netstate.IPv6Setting(ifName, "disable_ipv6"), Value: "1"},
		{Path: netstate.IPv6Setting("lo", "disable_ipv6"), Value: "0"},
		{Path: netstate.IPv6Setting(p.Pair.Pod.Name, "disable_ipv6"), Value: "0"},
		{Path: netstate.IPv6Setting(p.Pair.Pod.Name, "keep_addr_on_down"), Value: "1"},
	}
	p.PodAddresses = []netstate.Address{{Link: link, Prefix: lease.Address, NoDAD: true}}
	for _, r := range lease.Routes {
		r.Gateway, r.Link, r.Table = gateway, link, netnames.MainTable
		p.PodRoutes = append(p.PodRoutes, r)
	}
	return p
}

func (p Pod) String() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, " ") + "\n") }
	line("host link add", p.Pair.Host.String(), "mtu", strconv.Itoa(p.Pair.MTU), "up type veth peer name", p.Pair.Pod.String())
	for _, s := range p.HostSysctls {
		line("host sysctl", s.String())
	}
	for _, s := range p.PodSysctls {
		line("pod sysctl", s.String())
	}
	for _, a := range p.PodAddresses {
		line("pod address add", addressText(a), "dev", p.Pair.Pod.Name)
	}
	if p.KernelRoute.Dst.IsValid() {
		line("pod route del", p.KernelRoute.Over(p.Pair.Pod.Name))
	}
	for _, r := range p.PodRoutes {
		line("pod route add", r.Over(p.Pair.Pod.Name))
	}
	line("host address add", addressText(p.HostAddress), "dev", p.Pair.Host.Name)
	line("host route add", p.HostRoute.Over(p.Pair.Host.Name))
	return b.String()
}

func addressText(a netstate.Address) string {
	s := a.Prefix.String()
	if a.OnLink {
		s += " scope link"
	}
	if a.NoDAD {
		s += " nodad"
	}
	return s
}
