package rules

import (
	"errors"
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// Pod is the wanted state of one pod.
type Pod struct {
	VLAN       *VLAN       // nil without a branch ENI; with one, the pod has one interface
	Interfaces []Interface // by index
}

// Interface is the wanted state of one interface of a pod, beyond its veth pair. Its
// routes and its neighbour have no link yet: those in the pod use the pod end, ToPod uses
// the host end.
type Interface struct {
	Pair    Pair
	Address netip.Prefix // a single address, on the pod end

	// What IPv6 needs before the pod end comes up. Only this pod has the address, so
	// duplicate address detection is off: neither the address nor the link-local address
	// from which the host looks for the pod is tentative.
	PodSysctls  []netstate.Sysctl
	HostSysctls []netstate.Sysctl
	HostAddress netip.Prefix // link-local, on the host end; zero for IPv4

	// In the pod, in this order: the gateway is on the link, it is the default route, and
	// its MAC is the host end's. Rule leads to the table of an interface other than the
	// first; the first uses the main table and has no rule.
	Gateway   netstate.Route
	Rule      netstate.Rule
	Default   netstate.Route
	Neighbour netstate.Neighbour

	// On the host.
	ToPod     netstate.Route
	StaleRule netstate.Rule   // deleted if it exists: it would send the pod's traffic out of another ENI
	Rules     []netstate.Rule // added
}

// Attachment is an address of a pod, its veth pair and the route table of the ENI that has
// the address. Tables 0 and 1 mean main, as in replies of older daemons.
type Attachment struct {
	Pair    Pair
	Address netip.Addr
	Table   int
}

// maxInterfaces is the range of the gateways' last byte.
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

// inside fills in what interface i looks like in the pod.
func (f *Interface) inside(pair Pair, i int, address netip.Addr) {
	gateway := netnames.GatewayIPv4(i)
	if address.Is6() {
		gateway = netnames.GatewayIPv6(i)
		f.PodSysctls = podSysctls(pair.Pod.Name)
		f.HostSysctls = []netstate.Sysctl{{Path: netstate.IPv6Setting(pair.Host.Name, "accept_dad"), Value: "0"}}
		f.HostAddress = netip.PrefixFrom(pair.Host.MAC.LinkLocal(), 64)
	}
	table := i // the first interface has main
	if i == 0 {
		table = netnames.MainTable
	}
	f.Pair, f.Address = pair, netstate.Only(address)
	f.Gateway = netstate.Direct(netstate.Only(gateway), 0, table)
	f.Default = netstate.Default(gateway, 0, table)
	f.Neighbour = netstate.Neighbour{IP: gateway, MAC: pair.Host.MAC}
	if i > 0 {
		f.Rule = netstate.Rule{Priority: netnames.RulePodInterface, From: f.Address, Table: i, IPv6: address.Is6()}
	}
}

// reachedByAddress fills in the host side of an address whose ENI has a route table.
func (f *Interface) reachedByAddress(table int) {
	own, ipv6 := f.Address, f.Address.Addr().Is6()
	f.ToPod = netstate.Direct(own, 0, netnames.MainTable)
	f.StaleRule = netstate.Rule{Priority: netnames.RuleFromPod, From: own, IPv6: ipv6}
	f.Rules = []netstate.Rule{{Priority: netnames.RuleToPod, To: own, Table: netnames.MainTable, IPv6: ipv6}}
	if table != netnames.MainTable {
		f.Rules = append(f.Rules, netstate.Rule{Priority: netnames.RuleFromPod, From: own, Table: table, IPv6: ipv6})
	}
}

// podSysctls enable IPv6 in a pod even if the node's defaults for new links disable it. A
// write to disable_ipv6 is restarted until the kernel's network lock is free, so it is
// read first: IPv6 is enabled nearly everywhere.
func podSysctls(link string) []netstate.Sysctl {
	return []netstate.Sysctl{
		{Path: netstate.IPv6Setting(link, "accept_dad"), Value: "0"},
		{Path: netstate.IPv6Setting(link, "disable_ipv6"), Value: "0", ReadFirst: true},
		{Path: netstate.IPv6Setting("lo", "disable_ipv6"), Value: "0", ReadFirst: true},
	}
}
