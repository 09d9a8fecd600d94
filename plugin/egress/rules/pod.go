package rules

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Names of the link in the pod.
const (
	PodLink4 = "v4if0"
	PodLink6 = "v6if0"
)

// HostLinkPrefix begins the names of host links; 8 hexadecimal digits follow.
const HostLinkPrefix = "veth"

// MAC is an Ethernet address.
type MAC [6]byte

func (m MAC) String() string {
	s := hex.EncodeToString(m[:])
	return s[0:2] + ":" + s[2:4] + ":" + s[4:6] + ":" + s[6:8] + ":" + s[8:10] + ":" + s[10:12]
}

// LinkLocal is the IPv6 link-local address that the kernel makes of a MAC (EUI-64).
func (m MAC) LinkLocal() netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// End is one end of the veth pair.
type End struct {
	Name  string
	Index int32
	MAC   MAC
}

// Pair is the veth pair. It is known before the pod has an address.
type Pair struct {
	Host, Pod End
	MTU       int
}

// Indexes of the host's ends lie below those of pods' own links (plugin/podnet/rules) and
// above those that the kernel deals out one by one; one in 800 ADDs on a node of 1000
// pods meets one that is taken, and draws again.
const (
	firstHostIndex = 1 << 18
	hostIndexes    = 1<<20 - 1<<18
	firstPodIndex  = 1 << 10
	podIndexes     = 1 << 10
)

// NewPair draws names, indexes and MACs from 20 random bytes.
func NewPair(v6 bool, random [20]byte, mtu int) Pair {
	number := func(at int) int32 { return int32(random[at])<<16 | int32(random[at+1])<<8 | int32(random[at+2]) }
	mac := func(at int) MAC {
		m := MAC(random[at : at+6])
		m[0] = m[0]&^1 | 2 // unicast, locally administered
		return m
	}
	name := PodLink4
	if v6 {
		name = PodLink6
	}
	return Pair{
		Host: End{HostLinkPrefix + hex.EncodeToString(random[0:4]), firstHostIndex + number(4)%hostIndexes, mac(7)},
		Pod:  End{name, firstPodIndex + number(13)%podIndexes, mac(14)}, // bytes 13 to 15, of which the MAC has two too
		MTU:  mtu,
	}
}

// Address is an address on a link.
type Address struct {
	Prefix netip.Prefix
	OnLink bool // scope link
	NoDAD  bool // it is ours alone: usable at once
}

func (a Address) String() string {
	s := a.Prefix.String()
	if a.OnLink {
		s += " scope link"
	}
	if a.NoDAD {
		s += " nodad"
	}
	return s
}

// Route is a route over the pair.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr // invalid: scope link
	Source  netip.Addr
}

func (r Route) String() string {
	s := r.Dst.String()
	if r.Dst.Bits() == 0 {
		s = "default"
	}
	if r.Gateway.IsValid() {
		s += " via " + r.Gateway.String()
	} else {
		s += " scope link"
	}
	if r.Source.IsValid() {
		s += " src " + r.Source.String()
	}
	return s
}

// Sysctl is a wanted setting, a path below /proc/sys/net.
type Sysctl struct{ Path, Value string }

func (s Sysctl) String() string { return "net/" + s.Path + " = " + s.Value }

// Pod is the wanted state on both sides of the pair.
type Pod struct {
	Pair Pair

	HostSysctls []Sysctl
	HostAddress Address
	HostRoute   Route

	PodSysctls   []Sysctl  // in order
	PodAddresses []Address // of the link
	KernelRoute  Route     // added by the kernel with an address, taken away; zero: none
	PodRoutes    []Route
}

// Lease is what the address management gave.
type Lease struct {
	Address netip.Prefix
	Gateway netip.Addr
	Routes  []Route // a zero Gateway means the lease's
}

// NewPod lays out the egress over a pair. ifName is the pod's own link, of the cluster's
// family.
func NewPod(pair Pair, lease Lease, ifName string) (Pod, error) {
	ip := lease.Address.Addr()
	if !ip.IsValid() || ip.Zone() != "" || ip.Is4In6() {
		return Pod{}, errors.New("egress address " + lease.Address.String() + " is unusable")
	}
	own := netip.PrefixFrom(ip, ip.BitLen())
	p := Pod{
		Pair:        pair,
		HostSysctls: []Sysctl{{"ipv6/conf/" + pair.Host.Name + "/accept_ra", "0"}},
		HostRoute:   Route{Dst: own},
	}
	if ip.Is6() {
		return p.v6(lease, ifName), nil
	}
	if !lease.Gateway.Is4() {
		return Pod{}, errors.New("egress address " + lease.Address.String() + " has no IPv4 gateway")
	}
	return p.v4(lease), nil
}

// v4: the gateway's address is on each host link, and the pod sends everything there,
// also what is for its neighbours in the range.
func (p Pod) v4(lease Lease) Pod {
	ip := lease.Address.Addr()
	p.HostSysctls = append(p.HostSysctls, Sysctl{"ipv4/ip_forward", "1"})
	p.HostAddress = Address{Prefix: netip.PrefixFrom(lease.Gateway, 32), OnLink: true}
	p.PodAddresses = []Address{{Prefix: lease.Address}}
	p.KernelRoute = Route{Dst: lease.Address.Masked(), Source: ip}
	p.PodRoutes = []Route{
		{Dst: netip.PrefixFrom(lease.Gateway, 32), Source: ip},
		{Dst: lease.Address.Masked(), Gateway: lease.Gateway, Source: ip},
	}
	for _, r := range lease.Routes {
		if !r.Gateway.IsValid() {
			r.Gateway = lease.Gateway
		}
		p.PodRoutes = append(p.PodRoutes, r)
	}
	return p
}

// v6: the pod's own link loses IPv6, and the host's end is reached by its link-local
// address.
func (p Pod) v6(lease Lease, ifName string) Pod {
	gateway := p.Pair.Host.MAC.LinkLocal()
	p.HostAddress = Address{Prefix: netip.PrefixFrom(gateway, 64), NoDAD: true}
	p.PodSysctls = []Sysctl{
		{"ipv6/conf/" + ifName + "/disable_ipv6", "1"},
		{"ipv6/conf/lo/disable_ipv6", "0"},
		{"ipv6/conf/" + p.Pair.Pod.Name + "/disable_ipv6", "0"},
		{"ipv6/conf/" + p.Pair.Pod.Name + "/keep_addr_on_down", "1"},
	}
	p.PodAddresses = []Address{{Prefix: lease.Address, NoDAD: true}}
	for _, r := range lease.Routes {
		r.Gateway = gateway
		p.PodRoutes = append(p.PodRoutes, r)
	}
	return p
}

func (p Pod) String() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, " ") + "\n") }
	end := func(e End) string {
		return e.Name + " index " + strconv.Itoa(int(e.Index)) + " address " + e.MAC.String()
	}
	line("host link add", end(p.Pair.Host), "mtu", strconv.Itoa(p.Pair.MTU), "up type veth peer name", end(p.Pair.Pod))
	for _, s := range p.HostSysctls {
		line("host sysctl", s.String())
	}
	for _, s := range p.PodSysctls {
		line("pod sysctl", s.String())
	}
	for _, a := range p.PodAddresses {
		line("pod address add", a.String(), "dev", p.Pair.Pod.Name)
	}
	if p.KernelRoute.Dst.IsValid() {
		line("pod route del", p.KernelRoute.String(), "dev", p.Pair.Pod.Name)
	}
	for _, r := range p.PodRoutes {
		line("pod route add", r.String(), "dev", p.Pair.Pod.Name)
	}
	line("host address add", p.HostAddress.String(), "dev", p.Pair.Host.Name)
	line("host route add", p.HostRoute.String(), "dev", p.Pair.Host.Name)
	return b.String()
}
