package apply

import (
	"errors"
	"net/netip"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// VLANHasOtherMAC reports whether the device of a VLAN id exists with a MAC other than
// mac, so that it belongs to another branch ENI.
func VLANHasOtherMAC(vlan int, mac netstate.MAC) (_ bool, err error) {
	host, err := rtnl.Open()
	if err != nil {
		return false, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	device, found, err := host.LinkByName(netnames.VLANDevice(vlan))
	return found && device.MAC != mac, err
}

// VLANLeadsElsewhere reports whether a VLAN id is used for an address other than the
// pod's, judging by the routes of its table (strict mode) and the rules that look it up
// (standard mode). It is for pods about which nothing else is known.
func VLANLeadsElsewhere(vlan int, address netip.Addr) (_ bool, err error) {
	table, ok := netnames.BranchTable(vlan)
	if !ok {
		return false, nil
	}
	host, err := rtnl.Open()
	if err != nil {
		return false, failed(StepOpen, err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	device, _, err := host.LinkByName(netnames.VLANDevice(vlan))
	if err != nil {
		return false, err
	}
	fam := rtnl.Family(address)
	own := netstate.Only(address)
	routes, err := host.Routes(fam, table)
	if err != nil {
		return false, err
	}
	for _, r := range routes {
		if !r.Gateway.IsValid() && r.Link != device.Index && r.Dst != own && r.Dst.IsSingleIP() {
			return true, nil
		}
	}
	list, err := host.Rules(fam)
	if err != nil {
		return false, err
	}
	living, err := host.Routes(fam, netnames.MainTable)
	if err != nil {
		return false, err
	}
	for _, r := range list {
		if r.Priority == netnames.RuleFromPod && r.Table == table && r.From.IsValid() && r.From != own && leads(living, r.From) {
			return true, nil
		}
	}
	return false, nil
}

func leads(list []netstate.Route, to netip.Prefix) bool {
	for _, r := range list {
		if r.Dst == to {
			return true
		}
	}
	return false
}
