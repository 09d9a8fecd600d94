package resync

import "cnictl/daemon/ipam"

// FromMetadata describes an ENI from the instance metadata alone: attached, belonging to this
// node, and of no special type, since the metadata shows no tags, types or attachments. An ENI
// without addresses is taken for an elastic fabric adapter that cannot have any. It returns
// false if a part could not be read: nothing follows from the rest.
func FromMetadata(f Interface, instance string, primary ipam.ENIID) (ENI, bool) {
	if f.Unread != 0 {
		return ENI{}, false
	}
	e := ENI{
		ID: f.ENI, MAC: f.MAC, Status: "in-use", InterfaceType: "interface", SubnetID: f.SubnetID,
		AttachmentStatus: AttachmentAttached, InstanceID: instance, Card: f.Card, Device: f.Device, DeleteOnTermination: true,
		Prefixes: f.Prefixes, IPv6s: f.IPv6s, IPv6Prefixes: f.IPv6Prefixes, SecurityGroups: f.SecurityGroups,
		Tags: map[string]string{TagInstanceID: instance},
	}
	if f.ENI == primary {
		e.Device = 0
	}
	if len(f.IPv4s) > 0 {
		e.PrimaryIP, e.SecondaryIPs = f.IPv4s[0], f.IPv4s[1:]
	}
	if len(f.IPv4s) == 0 && len(f.IPv6s) == 0 {
		e.InterfaceType = string(TypeEFAOnly)
	}
	return e, true
}
