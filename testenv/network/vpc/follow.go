package vpc

import (
	"fmt"
	"net/netip"
	"slices"

	"cnictl/testenv/aws/fakeaws"
)

// follow updates the network after one change in the world. It is called in order, before the
// call that changed the world returns.
func (f *Fabric) follow(c fakeaws.Change) {
	f.log.Debug("world changed", "change", string(c.Kind), "eni_id", c.ENI.ID, "cidrs", c.CIDRs)
	var err error
	switch c.Kind {
	case fakeaws.ENIAttached:
		err = f.attach(c.ENI)
	case fakeaws.ENIDetached:
		err = f.links.detach(c.ENI.ID)
	case fakeaws.CIDRsAssigned:
		err = f.links.assign(c.ENI.ID, f.reachable(c.CIDRs))
	case fakeaws.CIDRsUnassigned:
		err = f.links.unassign(c.ENI.ID, f.reachable(c.CIDRs))
	case fakeaws.ENIModified:
		err = f.links.setUnchecked(c.ENI.ID, !c.ENI.SourceDestCheck)
	case fakeaws.InstanceAdded, fakeaws.InstanceRemoved:
		// Its ENIs have their own changes.
	case fakeaws.BranchAssociated:
		err = f.associate(c.ENI, c.Branch, c.Instance.ID)
	case fakeaws.BranchDisassociated:
		err = f.links.detach(c.ENI.ID)
	default:
		err = fmt.Errorf("unknown change %q", c.Kind)
	}
	if err != nil {
		f.fail(fmt.Errorf("%s %s: %w", c.Kind, c.ENI.ID, err))
	}
}

func (f *Fabric) attach(e fakeaws.ENI) error {
	if e.Type == "efa-only" {
		return nil // carries no IP and has no network link
	}
	if err := f.addGateway(e.SubnetID); err != nil {
		return err
	}
	return f.links.attach(ENI{
		ID: e.ID, InstanceID: e.Attachment.InstanceID, MAC: e.MAC,
		Card: e.Attachment.Card, Device: e.Attachment.Device,
	}, e.PrimaryIP, f.reachable(e.CIDRs()), !e.SourceDestCheck, e.Primary())
}

// followBranches adds the branches that a trunk already has.
func (f *Fabric) followBranches(trunk fakeaws.ENI) {
	for _, a := range f.world.Associations(trunk.ID) {
		if branch, there := f.world.ENI(a.Branch); there {
			f.follow(fakeaws.Change{
				Kind: fakeaws.BranchAssociated, ENI: branch, Branch: a, Instance: fakeaws.Instance{ID: trunk.Attachment.InstanceID},
			})
		}
	}
}

// associate connects a branch ENI to its VLAN on the trunk's link. On a kernel without
// VLANs it gets no link, and its addresses are unreachable.
func (f *Fabric) associate(e fakeaws.ENI, a fakeaws.Association, instanceID string) error {
	if err := f.addGateway(e.SubnetID); err != nil {
		return err
	}
	return f.links.associate(branch{trunk: a.Trunk, vlan: a.VLAN}, ENI{ID: e.ID, InstanceID: instanceID, MAC: e.MAC},
		e.PrimaryIP, f.reachable(e.CIDRs()), !e.SourceDestCheck)
}

// addGateway gives the fabric the router address of a subnet: the first host
// address, as in every VPC.
func (f *Fabric) addGateway(subnetID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.gateways[subnetID]; ok {
		return nil
	}
	subnet, ok := f.world.Subnet(subnetID)
	if !ok {
		return fmt.Errorf("find subnet %s: not in the world", subnetID)
	}
	gw := Gateway(subnet.CIDR)
	f.links.mu.Lock() // the router is not safe for concurrent use
	defer f.links.mu.Unlock()
	if err := f.links.router.addLocal(gw); err != nil {
		return fmt.Errorf("gateway of %s: %w", subnetID, err)
	}
	f.gateways[subnetID] = gw
	return nil
}

// Gateway returns the router address of an IPv4 subnet: its base address plus one.
func Gateway(subnet netip.Prefix) netip.Addr { return subnet.Masked().Addr().Next() }

// reachable drops the prefixes that this kernel cannot route.
func (f *Fabric) reachable(in []netip.Prefix) []netip.Prefix {
	if f.links.router.ipv6 {
		return in
	}
	return slices.DeleteFunc(slices.Clone(in), func(p netip.Prefix) bool { return p.Addr().Is6() })
}
