package rules

import (
	"errors"
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// BranchENI describes a pod's own branch ENI.
type BranchENI struct {
	VLAN    int
	MAC     netstate.MAC
	Gateway netip.Addr // of its subnet
	Trunk   int32      // index of the trunk ENI's link
	// Strict means that everything the pod sends and receives passes through the branch
	// ENI, including traffic with the node itself. Otherwise (standard mode) only traffic
	// that leaves the node does.
	Strict bool
}

// VLAN is the device of a branch ENI and the route table whose routes use it.
type VLAN struct {
	Name    string
	ID      int
	Parent  int32 // index of the trunk ENI's link; the MTU is the trunk's
	MAC     netstate.MAC
	Sysctls []netstate.Sysctl // set before it comes up
	Address netip.Prefix      // link-local, usable immediately; zero for IPv4
	Table   int
	// Stale rules of pods that had the host link's name or the VLAN id before, each
	// deleted until none is left.
	Stale []netstate.Rule

	Gateway, Default netstate.Route // over the device, whose index is still unknown
}

// NewBranchPod is the state of a pod with a branch ENI.
func NewBranchPod(pair Pair, address netip.Addr, eni BranchENI) (Pod, error) {
	address, gateway := address.Unmap(), eni.Gateway.Unmap()
	table, ok := netnames.BranchTable(eni.VLAN)
	switch {
	case !address.IsValid():
		return Pod{}, errors.New("lay out pod: no address")
	case !ok:
		return Pod{}, errors.New("lay out pod: VLAN id " + strconv.Itoa(eni.VLAN) + ", want 1 to " + strconv.Itoa(netnames.MaxVLAN))
	case !gateway.IsValid() || gateway.Is4() != address.Is4():
		return Pod{}, errors.New("lay out pod: the subnet's gateway " + gateway.String() + " is not of the family of " + address.String())
	}
	device, ipv6 := netnames.VLANDevice(eni.VLAN), address.Is6()
	v := &VLAN{
		Name: device, ID: eni.VLAN, Parent: eni.Trunk, MAC: eni.MAC, Table: table,
		Sysctls: hostSysctls(device),
		Stale: []netstate.Rule{
			{Priority: netnames.RuleBranch, InLink: pair.Host.Name, IPv6: ipv6},
			{Priority: netnames.RuleBranch, Table: table, IPv6: ipv6},
		},
		Gateway: netstate.Direct(netstate.Only(gateway), 0, table),
		Default: netstate.Default(gateway, 0, table),
	}
	if ipv6 {
		v.Sysctls = append(v.Sysctls, netstate.Sysctl{Path: netstate.IPv6Setting(device, "accept_dad"), Value: "0"})
		v.Address = netip.PrefixFrom(eni.MAC.LinkLocal(), 64)
	}
	p := Pod{VLAN: v, Interfaces: make([]Interface, 1)}
	f := &p.Interfaces[0]
	f.inside(pair, 0, address)
	f.reachedByAddress(table)
	if eni.Strict {
		f.ToPod.Table = table
		f.Rules = []netstate.Rule{
			{Priority: netnames.RuleBranch, InLink: device, Table: table, IPv6: ipv6},
			{Priority: netnames.RuleBranch, InLink: pair.Host.Name, Table: table, IPv6: ipv6},
		}
	}
	return p, nil
}
