package resync

import "cnictl/daemon/ipam"

// FromMetadata is an ENI as far as the instance metadata alone show it: attached, this
// node's, and of no special type, for they say nothing of tags, types and attachments.
// An ENI without addresses is taken for an elastic fabric adapter that can have none.
// false: a part of it could not be read, and nothing follows from the rest.
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
