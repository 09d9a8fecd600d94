package sim

import (
	"net/netip"
	"slices"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// This file is EC2's side of the daemons' mutating calls: what it refuses, and what no
// daemon should have requested.

func (e *ec2) attachFor(n *node, id ipam.ENIID, device int) (string, error) {
	x := e.enis[id]
	if x == nil {
		return "", errNoENI
	}
	if x.Status != resync.StatusAvailable {
		return "", refused("InvalidNetworkInterface.InUse: %s", id)
	}
	count := 0
	for _, other := range n.attached {
		count++
		if other.Device == device {
			e.unwise(n, "device index %d of %s is in use by %s", device, n.name, other.ID)
			return "", refused("InvalidParameterValue: device index %d is in use", device)
		}
	}
	if count >= n.spec.Limits.ENIsByCard[0] {
		e.unwise(n, "%s has %d ENIs already", n.name, count)
		return "", errAttachMax
	}
	if count >= n.takes().ENIsByCard[0] {
		n.refused++
		e.w.fault(FaultLess)
		return "", errAttachMax
	}
	if own := len(n.book()); n.spec.Policy.MaxENI > 0 && own > n.spec.Policy.MaxENI {
		e.w.violate("limits", "%s attaches an ENI beyond MAX_ENI %d", n.name, n.spec.Policy.MaxENI)
	}
	if x.slots() > n.spec.Limits.IPv4PerENI {
		e.w.violate("limits", "%s made %s with %d addresses, the type takes %d", n.name, id, x.slots(), n.spec.Limits.IPv4PerENI)
		return "", errAddressMax
	}
	if x.slots() > n.takes().IPv4PerENI {
		n.refused++
		n.tooLarge++
		e.w.fault(FaultLess)
		return "", errAddressMax
	}
	attachment := e.attach(x, n, device)
	x.stuck = e.w.strike(e.w.Scenario.Stuck, FaultStuck)
	return attachment, nil
}

// handsOff reports a violation if a daemon changes an ENI that does not belong to the CNI,
// unless a change of its tags is too recent to be known.
func (e *ec2) handsOff(n *node, x *eni, what string) {
	// A sweep deletes ENIs that daemons of other nodes leaked.
	swept := x.node == nil && x.maker != nil && x.Tags[resync.TagNoManage] != "true"
	if n.manages(x) || swept || n.tagsMayBeOld() {
		return
	}
	e.w.violate("hands off", "%s %s %s, which is not the CNI's", n.name, what, x.ID)
}

// unwise reports a violation if a daemon should have known that EC2 refuses its call.
func (e *ec2) unwise(n *node, format string, args ...any) {
	if !n.upstream && !n.mayBeSurprised() && !n.mayBeBlind() {
		e.w.violate("limits", format, args...)
	}
}

func (e *ec2) detachFor(n *node, attachment string) error {
	x := e.byAttachment(attachment)
	if x == nil {
		return errNoAttach
	}
	if x.AttachmentStatus == statusDetaching {
		return refused("IncorrectState: %s is detaching", attachment)
	}
	e.handsOff(n, x, "detaches")
	for _, s := range e.w.livingOn(x) {
		e.w.violate("none lost", "%s detaches %s, whose address %v is of living %s", n.name, x.ID, s.address, s)
	}
	e.w.tracef("%s: %s is detaching", n.name, x.ID)
	e.detach(x)
	x.stuck = e.w.strike(e.w.Scenario.Stuck, FaultStuck)
	return nil
}

func (e *ec2) deleteFor(n *node, id ipam.ENIID) error {
	x := e.enis[id]
	if x == nil {
		return errNoENI
	}
	if x.Status != resync.StatusAvailable {
		return refused("InvalidNetworkInterface.InUse: %s", id)
	}
	e.handsOff(n, x, "deletes")
	e.w.tracef("%s: %s deleted", n.name, id)
	e.delete(x)
	return nil
}

func (e *ec2) assignFor(n *node, id ipam.ENIID, ips, prefixes int) ([]netip.Prefix, error) {
	x := e.enis[id]
	if x == nil {
		return nil, errNoENI
	}
	e.handsOff(n, x, "puts addresses on")
	if x.slots()+ips+prefixes > n.spec.Limits.IPv4PerENI {
		e.unwise(n, "%s asks for %d more addresses on %s, which has %d", n.name, ips+prefixes, id, x.slots())
		return nil, errAddressMax
	}
	if x.slots()+ips+prefixes > n.takes().IPv4PerENI {
		n.refused++
		e.w.fault(FaultLess)
		return nil, errAddressMax
	}
	return e.assign(x, ips, prefixes)
}

func (e *ec2) unassignFor(n *node, id ipam.ENIID, cidrs []netip.Prefix) error {
	x := e.enis[id]
	if x == nil {
		return errNoENI
	}
	if slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return !x.holds(p) }) {
		return refused("InvalidParameterValue: some of %v are not assigned to %s", cidrs, id)
	}
	e.handsOff(n, x, "takes addresses off")
	for _, s := range e.w.livingOn(x) {
		if slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return p.Contains(s.address) }) {
			e.w.violate("none lost", "%s gives back %v, the address of living %s", n.name, s.address, s)
		}
	}
	e.w.tracef("%s: %v released", n.name, cidrs)
	e.unassign(x, cidrs)
	return nil
}

func (e *ec2) tag(x *eni, tags map[string]string) {
	all := x.description().Tags
	if all == nil {
		all = map[string]string{}
	}
	for k, v := range tags {
		all[k] = v
	}
	x.Tags = all
	e.changed(x)
}
