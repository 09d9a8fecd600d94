package fakeaws

import (
	"net/netip"
	"slices"
	"strings"

	"cnictl/testenv/aws/ec2model"
)

// maxAddressesPerCall limits one request, well above the largest instance type's
// limit, so that a wrong count cannot fill memory.
const maxAddressesPerCall = 255

// CreateENI creates a network interface.
func (w *World) CreateENI(s ENISpec) (ENI, error) {
	var out ENI
	err := w.update(func() error {
		e, err := w.createENI(s)
		if err == nil {
			out = e.clone()
		}
		return err
	})
	return out, err
}

func (w *World) createENI(s ENISpec) (*ENI, error) {
	if id, ok := w.tokens[s.ClientToken]; ok && s.ClientToken != "" && w.enis[id] != nil {
		return w.enis[id], nil
	}
	n := w.subnets[s.SubnetID]
	if n == nil {
		return nil, noSubnet(s.SubnetID)
	}
	e, err := w.draftENI(s, n)
	if err != nil {
		return nil, err
	}
	cidrs, err := w.pickFirst(n, e, s)
	if err != nil {
		return nil, err
	}
	e.ID, e.MAC = w.newID("eni"), w.newMAC()
	w.enis[e.ID] = e
	w.give(e, cidrs)
	if s.ClientToken != "" {
		w.tokens[s.ClientToken] = e.ID
	}
	return e, nil
}

func (w *World) draftENI(s ENISpec, n *subnet) (*ENI, error) {
	if s.Type == "" {
		s.Type = "interface"
	}
	if !slices.Contains([]string{"interface", "trunk", "efa", "efa-only", "branch"}, s.Type) {
		return nil, fail(codeInvalidValue, "Value (%s) for parameter interfaceType is invalid", s.Type)
	}
	groups := slices.Clone(s.SecurityGroups)
	if len(groups) == 0 {
		groups = []string{w.defaultGroup(n.VPCID)}
	}
	if err := w.checkGroups(groups, n.VPCID); err != nil {
		return nil, err
	}
	if len(s.Tags) > maxTags {
		return nil, fail(codeTagLimit, "more than %d tags", maxTags)
	}
	return &ENI{SubnetID: n.ID, VPCID: n.VPCID, AZ: n.AZ, Type: s.Type, Description: s.Description, Status: statusAvailable,
		SecurityGroups: groups, SourceDestCheck: true, ConnTrack: s.ConnTrack, Tags: tagsOf(s.Tags)}, nil
}

func (w *World) checkGroups(ids []string, vpcID string) error {
	for _, id := range ids {
		if g := w.groups[id]; g == nil || g.VPCID != vpcID {
			return noGroup(id)
		}
	}
	return nil
}

// pickFirst chooses the addresses of a new ENI, its primary one first.
func (w *World) pickFirst(n *subnet, e *ENI, s ENISpec) ([]netip.Prefix, error) {
	if s.IPs < 0 {
		return nil, fail(codeInvalidValue, "Value (%d) for parameter SecondaryPrivateIpAddressCount is invalid", s.IPs)
	}
	if s.Type == "efa-only" {
		return nil, nil
	}
	if !n.CIDR.IsValid() {
		return w.pickIPv6Only(n, s)
	}
	if n.AssignIPv6 && n.pool6 != nil && s.IPv6s == 0 {
		s.IPv6s = 1
	}
	req := assignment{addrs: s.SecondaryIPs, count: s.IPs, prefixes: s.CIDRs, prefixCount: s.Prefixes, count6: s.IPv6s, prefixCount6: s.IPv6Prefixes}
	if s.PrimaryIP.IsValid() {
		req.addrs = append([]netip.Addr{s.PrimaryIP}, req.addrs...)
	} else {
		req.count++
	}
	cidrs, err := w.pick(n, req)
	if err != nil || s.PrimaryIP.IsValid() {
		return cidrs, err
	}
	// The picked addresses come after the given ones; the lowest is the primary.
	return append([]netip.Prefix{cidrs[len(req.addrs)]}, slices.Delete(slices.Clone(cidrs), len(req.addrs), len(req.addrs)+1)...), nil
}

// pickIPv6Only chooses the addresses of a new ENI in an IPv6-only subnet, at least one.
func (w *World) pickIPv6Only(n *subnet, s ENISpec) ([]netip.Prefix, error) {
	if s.PrimaryIP.IsValid() || len(s.SecondaryIPs)+len(s.CIDRs)+s.IPs+s.Prefixes > 0 {
		return nil, fail(codeInvalidCombination, "The subnet '%s' is IPv6-only: IPv4 addresses cannot be assigned", n.ID)
	}
	return w.pick(n, assignment{count6: max(1, s.IPv6s), prefixCount6: s.IPv6Prefixes})
}

// assignment requests addresses: given ones, and counts to pick.
type assignment struct {
	addrs        []netip.Addr
	count        int
	prefixes     []netip.Prefix
	prefixCount  int
	count6       int
	prefixCount6 int
	reassign     bool // given addresses may be taken from another ENI of the subnet
}

func (a assignment) slots() int  { return len(a.addrs) + a.count + len(a.prefixes) + a.prefixCount }
func (a assignment) slots6() int { return a.count6 + a.prefixCount6 }

// pick chooses CIDRs: given addresses, picked ones, given prefixes, picked prefixes,
// then IPv6. It changes nothing.
func (w *World) pick(n *subnet, a assignment) ([]netip.Prefix, error) {
	for name, c := range map[string]int{"SecondaryPrivateIpAddressCount": a.count, "Ipv4PrefixCount": a.prefixCount, "Ipv6AddressCount": a.count6, "Ipv6PrefixCount": a.prefixCount6} {
		if c < 0 || c > maxAddressesPerCall+1 {
			return nil, fail(codeInvalidValue, "Value (%d) for parameter %s is invalid", c, name)
		}
	}
	given, err := w.pickGiven(n, a)
	if err != nil {
		return nil, err
	}
	addrs, prefixes := given[:len(a.addrs):len(a.addrs)], given[len(a.addrs):]
	// Reserve the given CIDRs so that the counts below do not pick them.
	var reserved []netip.Prefix
	for _, c := range given {
		if n.pool.IsFree(c) {
			n.pool.Mark(c, true)
			reserved = append(reserved, c)
		}
	}
	defer func() {
		for _, c := range reserved {
			n.pool.Mark(c, false)
		}
	}()
	blocks := n.pool.FindBlocks(a.prefixCount, 0)
	if len(blocks) < a.prefixCount {
		if w.wire.exhaustedAsValue() && n.pool.Free() < a.prefixCount*ec2model.BlockSize {
			return nil, w.exhausted()
		}
		return nil, fail(codeFragmented, "The specified subnet does not have enough free cidr blocks to satisfy the request.")
	}
	for _, c := range blocks {
		n.pool.Mark(c, true)
		reserved = append(reserved, c)
	}
	picked := n.pool.Find(a.count, 0)
	if len(picked) < a.count {
		return nil, w.exhausted()
	}
	out := slices.Concat(addrs, picked, prefixes, blocks)
	if a.slots6() == 0 {
		return out, nil
	}
	if n.pool6 == nil {
		return nil, fail(codeInvalidValue, "The subnet '%s' does not have an associated IPv6 CIDR block", n.ID)
	}
	return slices.Concat(out, n.pool6.Find(a.count6), n.pool6.FindBlocks(a.prefixCount6)), nil
}

func (w *World) exhausted() error {
	if w.wire.exhaustedAsValue() {
		return fail(codeInvalidValue, "There aren't sufficient free Ipv4 addresses or prefixes")
	}
	return fail(codeSubnetExhausted, "The specified subnet does not have enough free addresses to satisfy the request.")
}

func (w *World) pickGiven(n *subnet, a assignment) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, addr := range a.addrs {
		out = append(out, single(addr))
	}
	for _, p := range a.prefixes {
		if !p.Addr().Is4() || p.Bits() != 28 || p.Masked() != p {
			return nil, fail(codeInvalidValue, "Value (%s) for parameter Ipv4Prefix is invalid: an aligned /28 is accepted", p)
		}
		out = append(out, p)
	}
	for i, c := range out {
		if !n.CIDR.Contains(c.Addr()) {
			return nil, fail(codeInvalidValue, "Address %s does not fall within the subnet's address range", c.Addr())
		}
		if slices.ContainsFunc(out[:i], c.Overlaps) {
			return nil, fail(codeInvalidValue, "Address %s is given twice", c.Addr())
		}
		if !n.pool.IsFree(c) && !(a.reassign && w.reassignable(c)) {
			return nil, fail(codeInvalidValue, "Address %s is in use.", c.Addr())
		}
	}
	return out, nil
}

// reassignable reports whether c is a secondary address or a prefix of some ENI.
func (w *World) reassignable(c netip.Prefix) bool {
	e := w.enis[w.owners[c]]
	return e != nil && c.Addr() != e.PrimaryIP
}

// give makes the ENI the owner of picked CIDRs.
func (w *World) give(e *ENI, cidrs []netip.Prefix) {
	n := w.subnets[e.SubnetID]
	for _, c := range cidrs {
		w.owners[c] = e.ID
		switch a := c.Addr(); {
		case a.Is4() && !c.IsSingleIP():
			n.pool.Mark(c, true)
			e.Prefixes = append(e.Prefixes, c)
		case a.Is4():
			n.pool.Mark(c, true)
			if !e.PrimaryIP.IsValid() {
				e.PrimaryIP = a
				continue
			}
			e.SecondaryIPs = append(e.SecondaryIPs, a)
		case c.IsSingleIP():
			n.pool6.Mark(c, true)
			e.IPv6s = append(e.IPv6s, a)
		default:
			n.pool6.Mark(c, true)
			e.IPv6Prefixes = append(e.IPv6Prefixes, c)
		}
	}
}

// take ends the ENI's ownership of CIDRs.
func (w *World) take(e *ENI, cidrs []netip.Prefix) {
	n := w.subnets[e.SubnetID]
	for _, c := range cidrs {
		delete(w.owners, c)
		if c.Addr().Is4() {
			n.pool.Mark(c, false)
		} else {
			n.pool6.Mark(c, false)
		}
	}
	isAddr := func(a netip.Addr) bool { return slices.Contains(cidrs, single(a)) }
	isPrefix := func(p netip.Prefix) bool { return slices.Contains(cidrs, p) }
	e.SecondaryIPs = slices.DeleteFunc(e.SecondaryIPs, isAddr)
	e.IPv6s = slices.DeleteFunc(e.IPv6s, isAddr)
	e.Prefixes = slices.DeleteFunc(e.Prefixes, isPrefix)
	e.IPv6Prefixes = slices.DeleteFunc(e.IPv6Prefixes, isPrefix)
}

// DeleteENI deletes a network interface that is not attached.
func (w *World) DeleteENI(id string) error {
	return w.update(func() error {
		e := w.enis[id]
		if e == nil {
			return noENI(id)
		}
		if e.Attachment.ID != "" {
			return fail(codeInvalidValue, "Network interface '%s' is currently in use.", id)
		}
		w.deleteENI(e)
		return nil
	})
}

func (w *World) deleteENI(e *ENI) {
	w.dissolve(e)
	w.take(e, e.CIDRs())
	delete(w.enis, e.ID)
}

// findENIs looks up ids among interfaces: it returns all of them or a NotFound that names the
// missing ones.
func findENIs(all map[string]*ENI, ids []string) ([]*ENI, error) {
	var found []*ENI
	var missing []string
	for _, id := range ids {
		if !strings.HasPrefix(id, "eni-") {
			return nil, fail("InvalidNetworkInterfaceID.Malformed", "Invalid id: \"%s\"", id)
		}
		if e := all[id]; e != nil {
			found = append(found, e)
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return nil, noENI(missing...)
	}
	return found, nil
}
