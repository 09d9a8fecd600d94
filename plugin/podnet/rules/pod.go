package rules

import (
	"errors"
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
)

// Pod is the wanted state of one pod.
type Pod struct {
	VLAN       *VLAN       // of a pod with a branch ENI; it has one interface
	Interfaces []Interface // by index
}

// Interface is the wanted state of one interface of a pod, beyond its veth pair.
type Interface struct {
	Pair    Pair
	Address netip.Prefix // of one address, on the pod end

	// What IPv6 needs before the pod end comes up. The address is the pod's alone, so
	// nobody waits for the detection of duplicates: neither it nor the link-local
	// address by which the host looks for the pod is tentative.
	PodSysctls  []Sysctl
	HostSysctls []Sysctl
	HostAddress netip.Prefix // link-local, on the host end; zero for IPv4

	// In the pod, in this order: the gateway is reached on the link, what the interface
	// sends goes through it, and its MAC is the host end's. The rule leads to the table
	// of an interface that is not the first; the first has the main table and none.
	Gateway   Route
	Rule      Rule
	Default   Route
	Neighbour Neighbour

	// On the host.
	ToPod     Route
	StaleRule Rule   // deleted if there: it would send the pod's traffic out of another ENI
	Rules     []Rule // added
}

// Route is a route. The zero Dst is the default route of Gateway's family.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr // zero: on the link
	Link    string
	Table   int // 0: main
}

// Neighbour is a permanent neighbour entry on the pod end.
type Neighbour struct {
	IP   netip.Addr
	MAC  MAC
	Link string
}

// Rule is a policy rule. Table 0 means any, for deletion only.
type Rule struct {
	Priority int
	From, To netip.Prefix
	InLink   string
	Table    int
	IPv6     bool // family of a rule without From and To
}

// Attachment is an address of a pod, the veth pair it lies on and the route table of
// the ENI that has it. Table 0 and 1 mean main, as in replies of older daemons.
type Attachment struct {
	Pair    Pair
	Address netip.Addr
	Table   int
}

// maxInterfaces is what the gateways' last byte has room for.
const maxInterfaces = 254

// NewPod is the state of an ordinary pod: one interface for each attachment.
func NewPod(list ...Attachment) (Pod, error) {
	switch {
	case len(list) == 0:
		return Pod{}, errors.New("lay out pod: no address")
	case len(list) > maxInterfaces:
		return Pod{}, errors.New("lay out pod: " + strconv.Itoa(len(list)) + " interfaces")
	}
	p := Pod{Interfaces: make([]Interface, len(list))}
	for i := range list {
		a := &list[i]
		address := a.Address.Unmap()
		if !address.IsValid() {
			return Pod{}, errors.New("lay out pod: no address")
		}
		if a.Table < 0 {
			return Pod{}, errors.New("lay out pod: route table " + strconv.Itoa(a.Table) + " is negative")
		}
		f := &p.Interfaces[i]
		f.inside(a.Pair, i, address)
		f.reachedByAddress(mainOr(a.Table))
	}
	return p, nil
}

func mainOr(table int) int {
	if table == 0 || netnames.IsMain(table) {
		return netnames.MainTable
	}
	return table
}

// inside is what the pod sees of interface i.
func (f *Interface) inside(pair Pair, i int, address netip.Addr) {
	gateway := netnames.GatewayIPv4(i)
	if address.Is6() {
		gateway = netnames.GatewayIPv6(i)
		f.PodSysctls = podSysctls(pair.Pod.Name)
		f.HostSysctls = []Sysctl{{Key: "accept_dad", Value: "0"}}
		f.HostAddress = netip.PrefixFrom(linkLocal(pair.Host.MAC), 64)
	}
	link := pair.Pod.Name
	f.Pair, f.Address = pair, netip.PrefixFrom(address, address.BitLen())
	f.Gateway = Route{Dst: netip.PrefixFrom(gateway, gateway.BitLen()), Link: link, Table: i}
	f.Default = Route{Gateway: gateway, Link: link, Table: i}
	f.Neighbour = Neighbour{IP: gateway, MAC: pair.Host.MAC, Link: link}
	if i > 0 {
		f.Rule = Rule{Priority: netnames.RulePodInterface, From: f.Address, Table: i}
	}
}

// reachedByAddress is the host's side of an address whose ENI has a route table.
func (f *Interface) reachedByAddress(table int) {
	own := f.Address
	f.ToPod = Route{Dst: own, Link: f.Pair.Host.Name}
	f.StaleRule = Rule{Priority: netnames.RuleFromPod, From: own}
	f.Rules = []Rule{{Priority: netnames.RuleToPod, To: own, Table: netnames.MainTable}}
	if table != netnames.MainTable {
		f.Rules = append(f.Rules, Rule{Priority: netnames.RuleFromPod, From: own, Table: table})
	}
}

// podSysctls lets an IPv6 pod have its address where the node's defaults for new links
// switch IPv6 off. Switching it on restarts the call until the kernel's network lock is
// free, and it is on nearly everywhere.
func podSysctls(link string) []Sysctl {
	return []Sysctl{
		{Link: link, Key: "accept_dad", Value: "0"},
		{Link: link, Key: "disable_ipv6", Value: "0", ReadFirst: true},
		{Link: "lo", Key: "disable_ipv6", Value: "0", ReadFirst: true},
	}
}

// linkLocal is the address that the kernel itself would give a link of that MAC.
func linkLocal(m MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}
