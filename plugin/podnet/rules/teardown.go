package rules

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
)

// Teardown is what DEL removes on the host; all of it may be missing already. The veth
// pair is not included: it goes with the pod's namespace, and deleting it would mean
// waiting for the kernel's grace period.
type Teardown struct {
	VLANLink string // device of a branch ENI; empty for ordinary pods
	ToPod    netstate.Rule
	All      []netstate.Rule // each deleted until none is left: old releases added one per VPC CIDR
	Route    netstate.Route  // in the main table, whatever its link
}

// NewTeardown removes an address of either family. Table 0 matches rules of any table.
func NewTeardown(address netip.Addr, table int) (Teardown, error) {
	address = address.Unmap()
	if !address.IsValid() {
		return Teardown{}, errors.New("lay out teardown: no address")
	}
	if table < 0 {
		return Teardown{}, errors.New("lay out teardown: route table " + strconv.Itoa(table) + " is negative")
	}
	own, ipv6 := netstate.Only(address), address.Is6()
	t := Teardown{
		ToPod: netstate.Rule{Priority: netnames.RuleToPod, To: own, Table: netnames.MainTable, IPv6: ipv6},
		Route: netstate.Route{Dst: own, Scope: netstate.Nowhere},
	}
	if !netnames.IsMain(table) {
		t.All = []netstate.Rule{{Priority: netnames.RuleFromPod, From: own, Table: table, IPv6: ipv6}}
	}
	return t, nil
}

// NewBranchTeardown removes a branch-ENI pod, whichever enforcing mode it was set up with,
// including its VLAN device and the rules that lead to the device's table.
func NewBranchTeardown(address netip.Addr, vlan int) (Teardown, error) {
	table, ok := netnames.BranchTable(vlan)
	if !ok {
		return Teardown{}, errors.New("lay out teardown: VLAN id " + strconv.Itoa(vlan) + ", want 1 to " + strconv.Itoa(netnames.MaxVLAN))
	}
	t, err := NewTeardown(address, table)
	if err != nil {
		return Teardown{}, err
	}
	t.VLANLink = netnames.VLANDevice(vlan)
	iif := netstate.Rule{Priority: netnames.RuleBranch, Table: table, IPv6: address.Unmap().Is6()}
	t.All = append([]netstate.Rule{iif}, t.All...)
	return t, nil
}

func (t Teardown) String() string {
	var b strings.Builder
	if t.VLANLink != "" {
		b.WriteString("host link del " + t.VLANLink + "\n")
	}
	b.WriteString("host rule del " + ruleText(t.ToPod) + "\n")
	for _, r := range t.All {
		b.WriteString("host rule del " + ruleText(r) + "\n")
	}
	b.WriteString("host route del " + t.Route.String() + "\n")
	return b.String()
}
