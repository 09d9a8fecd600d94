package fakeaws

import (
	"net/netip"
	"time"
)

// The actions that change network interfaces. Each reads its parameters first; see
// action.

func assignPrivateIPAddresses(f *form) func(*World) (any, error) {
	id := f.required("NetworkInterfaceId")
	s := AssignSpec{Addresses: f.addrs("PrivateIpAddress"), Count: f.number("SecondaryPrivateIpAddressCount"),
		Prefixes: f.prefixes("Ipv4Prefix"), PrefixCount: f.number("Ipv4PrefixCount"), Reassign: f.boolean("AllowReassignment")}
	onlyOne(f, "PrivateIpAddress", len(s.Addresses) > 0, s.Count != 0, len(s.Prefixes) > 0, s.PrefixCount != 0)
	return func(w *World) (any, error) {
		s := s
		s.AtMost = f.shared.fault.AtMost
		cidrs, err := w.Assign(id, s)
		if err != nil {
			return nil, err
		}
		type address struct {
			Address string `xml:"privateIpAddress"`
		}
		var addrs []address
		var prefixes []netip.Prefix
		for _, c := range cidrs {
			if c.IsSingleIP() {
				addrs = append(addrs, address{c.Addr().String()})
			} else {
				prefixes = append(prefixes, c)
			}
		}
		return members{{"networkInterfaceId", id}, {"assignedPrivateIpAddressesSet", items(addrs)},
			{"assignedIpv4PrefixSet", items(prefixes4(prefixes))}, {"return", true}}, nil
	}
}

// onlyOne refuses calls that combine alternatives of which EC2 accepts one per call.
func onlyOne(f *form, name string, given ...bool) {
	n := 0
	for _, g := range given {
		if g {
			n++
		}
	}
	if n > 1 {
		f.reject(codeInvalidCombination, "Only one of addresses, address count, prefixes and prefix count may be given (%s)", name)
	}
}

func unassignPrivateIPAddresses(f *form) func(*World) (any, error) {
	id := f.required("NetworkInterfaceId")
	all := allOf(f.addrs("PrivateIpAddress"), f.prefixes("Ipv4Prefix"))
	return func(w *World) (any, error) { return ok(w.Unassign(id, f.atMost(all)...)) }
}

// allOf returns addresses, as prefixes, followed by prefixes.
func allOf(addrs []netip.Addr, cidrs []netip.Prefix) []netip.Prefix {
	for _, a := range addrs {
		cidrs = append(cidrs, single(a))
	}
	return cidrs
}

// atMost returns the CIDRs that the call's fault lets through.
func (f *form) atMost(all []netip.Prefix) []netip.Prefix {
	if most := f.shared.fault.AtMost; most > 0 && most < len(all) {
		return all[:most]
	}
	return all
}

func assignIPv6Addresses(f *form) func(*World) (any, error) {
	id := f.required("NetworkInterfaceId")
	s := AssignSpec{IPv6Count: f.number("Ipv6AddressCount"), IPv6Prefixes: f.number("Ipv6PrefixCount")}
	onlyOne(f, "Ipv6AddressCount", s.IPv6Count != 0, s.IPv6Prefixes != 0)
	return func(w *World) (any, error) {
		s := s
		s.AtMost = f.shared.fault.AtMost
		cidrs, err := w.Assign(id, s)
		if err != nil {
			return nil, err
		}
		addrs, prefixes := split6(cidrs)
		return members{{"networkInterfaceId", id}, {"assignedIpv6Addresses", items(addrs)}, {"assignedIpv6PrefixSet", items(prefixes)}}, nil
	}
}

// split6 splits IPv6 CIDRs into EC2's two lists of strings.
func split6(cidrs []netip.Prefix) (addrs, prefixes []string) {
	for _, c := range cidrs {
		if c.IsSingleIP() {
			addrs = append(addrs, c.Addr().String())
		} else {
			prefixes = append(prefixes, c.String())
		}
	}
	return addrs, prefixes
}

func unassignIPv6Addresses(f *form) func(*World) (any, error) {
	id := f.required("NetworkInterfaceId")
	all := allOf(f.addrs("Ipv6Addresses"), f.prefixes("Ipv6Prefix"))
	return func(w *World) (any, error) {
		all := f.atMost(all)
		if err := w.Unassign(id, all...); err != nil {
			return nil, err
		}
		gone, prefixes := split6(all)
		return members{{"networkInterfaceId", id}, {"unassignedIpv6Addresses", items(gone)}, {"unassignedIpv6PrefixSet", items(prefixes)}}, nil
	}
}

func createNetworkInterface(f *form) func(*World) (any, error) {
	s := ENISpec{SubnetID: f.required("SubnetId"), Description: f.text("Description"), Type: f.text("InterfaceType"),
		SecurityGroups: f.list("SecurityGroupId"), PrimaryIP: f.addr("PrivateIpAddress"), IPs: f.number("SecondaryPrivateIpAddressCount"),
		Prefixes: f.number("Ipv4PrefixCount"), CIDRs: f.prefixes("Ipv4Prefix"), IPv6s: f.number("Ipv6AddressCount"),
		IPv6Prefixes: f.number("Ipv6PrefixCount"), ClientToken: f.text("ClientToken"), ConnTrack: readConnTrack(f), Tags: readTagSpecifications(f)}
	readPrivateIPs(f, &s)
	onlyOne(f, "SecondaryPrivateIpAddressCount", s.IPs != 0, s.Prefixes != 0, len(s.CIDRs) > 0, len(s.SecondaryIPs) > 0)
	onlyOne(f, "Ipv6AddressCount", s.IPv6s != 0, s.IPv6Prefixes != 0)
	return func(w *World) (any, error) {
		s := s
		if most := f.shared.fault.AtMost; most > 0 {
			s.IPs, s.Prefixes, s.IPv6s, s.IPv6Prefixes = min(s.IPs, most), min(s.Prefixes, most), min(s.IPv6s, most), min(s.IPv6Prefixes, most)
		}
		e, err := w.CreateENI(s)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		x := w.xmlOf(&e)
		w.mu.Unlock()
		x.Status = "pending" // EC2 returns this right after creation; Describe returns available
		return members{{"clientToken", s.ClientToken}, {"networkInterface", x}}, nil
	}
}

func readPrivateIPs(f *form, s *ENISpec) {
	for _, g := range f.groups("PrivateIpAddresses") {
		a := g.addr("PrivateIpAddress")
		if !g.boolean("Primary") {
			s.SecondaryIPs = append(s.SecondaryIPs, a)
			continue
		}
		if s.PrimaryIP.IsValid() {
			g.reject(codeInvalidCombination, "Only one primary address may be given")
		}
		s.PrimaryIP = a
	}
}

func readConnTrack(f *form) ConnTrack {
	g := f.group("ConnectionTrackingSpecification")
	return ConnTrack{TCPEstablished: g.seconds("TcpEstablishedTimeout"), UDPStream: g.seconds("UdpStreamTimeout"), UDP: g.seconds("UdpTimeout")}
}

func readTagSpecifications(f *form) map[string]string {
	tags := make(map[string]string)
	for _, g := range f.groups("TagSpecification") {
		if kind := g.required("ResourceType"); kind != "network-interface" {
			g.reject(codeInvalidValue, "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		for k, v := range g.tags() {
			tags[k] = v
		}
	}
	return tags
}

func attachNetworkInterface(f *form) func(*World) (any, error) {
	s := AttachSpec{ENIID: f.required("NetworkInterfaceId"), InstanceID: f.required("InstanceId"), Card: f.number("NetworkCardIndex")}
	f.required("DeviceIndex")
	s.Device = f.number("DeviceIndex")
	return func(w *World) (any, error) {
		s := s
		s.Hold = f.shared.fault.Hold
		id, err := w.AttachENI(s)
		if err != nil {
			return nil, err
		}
		return members{{"attachmentId", id}, {"networkCardIndex", s.Card}}, nil
	}
}

func modifyNetworkInterfaceAttribute(f *form) func(*World) (any, error) {
	id := f.required("NetworkInterfaceId")
	groups := f.list("SecurityGroupId")
	attachment, check, description := f.group("Attachment"), f.group("SourceDestCheck"), f.group("Description")
	attachmentID := attachment.text("AttachmentId")
	hasDelete, onDelete := attachment.has("DeleteOnTermination"), attachment.boolean("DeleteOnTermination")
	hasCheck, onCheck := check.has("Value"), check.boolean("Value")
	hasText, text := description.has("Value"), description.text("Value")
	track := readConnTrack(f)
	var changes []func(*World) error
	for _, c := range []struct {
		given bool
		apply func(*World) error
	}{
		{len(groups) > 0, func(w *World) error { return w.SetSecurityGroups(id, groups...) }},
		{hasDelete, func(w *World) error { return w.SetDeleteOnTermination(id, attachmentID, onDelete) }},
		{hasCheck, func(w *World) error { return w.SetSourceDestCheck(id, onCheck) }},
		{hasText, func(w *World) error { return w.SetDescription(id, text) }},
		{track != ConnTrack{}, func(w *World) error { return w.SetConnTrack(id, track) }},
	} {
		if c.given {
			changes = append(changes, c.apply)
		}
	}
	if len(changes) != 1 {
		f.reject(codeInvalidCombination, "Exactly one attribute may be modified per call, %d are given", len(changes))
	}
	return func(w *World) (any, error) { return ok(changes[0](w)) }
}

// SetConnTrack replaces an ENI's connection tracking timeouts.
func (w *World) SetConnTrack(eniID string, c ConnTrack) error {
	return w.modify(eniID, func(e *ENI) error {
		if c.UDPStream > 180*time.Second || c.UDP > 60*time.Second {
			return fail(codeInvalidValue, "connection tracking timeouts out of range")
		}
		e.ConnTrack = c
		return nil
	})
}

func detachNetworkInterface(f *form) func(*World) (any, error) {
	id := f.required("AttachmentId")
	f.boolean("Force")
	return func(w *World) (any, error) { return ok(w.detachENI(id, f.shared.fault.Hold)) }
}

func deleteNetworkInterface(f *form) func(*World) (any, error) {
	id := f.required("NetworkInterfaceId")
	return func(w *World) (any, error) { return ok(w.DeleteENI(id)) }
}

func createTags(f *form) func(*World) (any, error) {
	ids, tags := f.list("ResourceId"), f.tags()
	if len(ids) == 0 || len(tags) == 0 {
		f.reject(codeMissingParameter, "The request must contain resources and tags")
	}
	return func(w *World) (any, error) { return ok(w.SetTags(tags, ids...)) }
}
