package fakeaws

import (
	"net/netip"
	"slices"
)

// AssignSpec requests addresses for an ENI: given ones and counts to pick.
type AssignSpec struct {
	Addresses    []netip.Addr
	Count        int
	Prefixes     []netip.Prefix // IPv4 /28s
	PrefixCount  int
	IPv6Count    int
	IPv6Prefixes int  // /80s to pick
	Reassign     bool // given addresses may be another ENI's secondary ones
	AtMost       int  // limit for each kind, even if more is requested; 0 if none
}

// bounded applies AtMost.
func (s AssignSpec) bounded() AssignSpec {
	if n := s.AtMost; n > 0 {
		s.Addresses, s.Prefixes = s.Addresses[:min(n, len(s.Addresses))], s.Prefixes[:min(n, len(s.Prefixes))]
		s.Count, s.PrefixCount, s.IPv6Count, s.IPv6Prefixes = min(n, s.Count), min(n, s.PrefixCount), min(n, s.IPv6Count), min(n, s.IPv6Prefixes)
	}
	return s
}

// Assign gives an ENI all requested addresses (see AtMost) or none. It returns them in this
// order: given, picked, given prefixes, picked prefixes, IPv6.
func (w *World) Assign(eniID string, s AssignSpec) ([]netip.Prefix, error) {
	var out []netip.Prefix
	err := w.update(func() error {
		var err error
		out, err = w.assign(eniID, s.bounded())
		return err
	})
	return out, err
}

func (w *World) assign(eniID string, s AssignSpec) ([]netip.Prefix, error) {
	e := w.enis[eniID]
	if e == nil {
		return nil, noENI(eniID)
	}
	if e.Type == "efa-only" {
		return nil, fail(codeUnsupported, "Network interface '%s' of type efa-only cannot hold addresses", eniID)
	}
	req := assignment{addrs: s.Addresses, count: s.Count, prefixes: s.Prefixes, prefixCount: s.PrefixCount,
		count6: s.IPv6Count, prefixCount6: s.IPv6Prefixes, reassign: s.Reassign}
	if req.slots()+req.slots6() == 0 {
		return nil, fail(codeMissingParameter, "The request must contain addresses or a count")
	}
	if err := w.checkSlots(e, req.slots(), req.slots6(), len(s.Prefixes)+s.PrefixCount > 0); err != nil {
		return nil, err
	}
	cidrs, err := w.pick(w.subnets[e.SubnetID], req)
	if err != nil {
		return nil, err
	}
	w.takeFromOwners(e, cidrs)
	w.give(e, cidrs)
	w.emit(w.eniChange(CIDRsAssigned, e, cidrs))
	w.refreshENI(e)
	return cidrs, nil
}

// takeFromOwners takes given addresses from the ENIs that own them.
func (w *World) takeFromOwners(to *ENI, cidrs []netip.Prefix) {
	for _, c := range cidrs {
		from := w.enis[w.owners[c]]
		if from == nil {
			continue
		}
		w.take(from, []netip.Prefix{c})
		w.emit(w.eniChange(CIDRsUnassigned, from, []netip.Prefix{c}))
		if from != to {
			w.refreshENI(from)
		}
	}
}

// checkSlots checks an ENI against the limits of its instance type. An unattached ENI is
// checked when it is attached.
func (w *World) checkSlots(e *ENI, more, more6 int, prefixes bool) error {
	if e.Attachment.ID == "" {
		return nil
	}
	return checkSlots(e, w.instances[e.Attachment.InstanceID], more, more6, prefixes)
}

func checkSlots(e *ENI, i *instance, more, more6 int, prefixes bool) error {
	l := i.limits
	if prefixes && !l.PrefixDelegation() {
		return fail(codeUnsupported, "Prefixes are not supported on instance type '%s'", l.Type)
	}
	if max := l.IPv4PerENI; more > 0 && e.slots()+more > max {
		return fail(codeAddressLimit, "Number of private addresses will exceed limit of %d for '%s' on instance type '%s'.", max, e.ID, l.Type)
	}
	max6 := l.IPv6PerENI
	if max6 < 0 {
		max6 = l.IPv4PerENI // EC2 gives no limit; where it does, the two are equal
	}
	if more6 > 0 && e.slots6()+more6 > max6 {
		return fail("Ipv6AddressLimitExceeded", "Number of IPv6 addresses will exceed limit of %d for '%s'.", max6, e.ID)
	}
	return nil
}

// Unassign removes addresses (/32, /128) and prefixes from an ENI: all or none.
func (w *World) Unassign(eniID string, cidrs ...netip.Prefix) error {
	return w.update(func() error {
		e := w.enis[eniID]
		if e == nil {
			return noENI(eniID)
		}
		for _, c := range cidrs {
			if c.IsSingleIP() && c.Addr() == e.PrimaryIP {
				return fail(codeInvalidValue, "The primary address %s cannot be unassigned", c.Addr())
			}
			if w.owners[c] != eniID {
				return fail(codeInvalidValue, "Some of the specified addresses are not assigned to interface %s: %s", eniID, c)
			}
		}
		if len(cidrs) == 0 {
			return fail(codeMissingParameter, "The request must contain addresses or prefixes")
		}
		cidrs = slices.Clone(cidrs)
		w.take(e, cidrs)
		w.emit(w.eniChange(CIDRsUnassigned, e, cidrs))
		w.refreshENI(e)
		return nil
	})
}

func (w *World) eniChange(kind ChangeKind, e *ENI, cidrs []netip.Prefix) Change {
	c := Change{Kind: kind, ENI: e.clone(), CIDRs: cidrs}
	if i := w.instances[e.Attachment.InstanceID]; i != nil {
		c.Instance = i.public()
	}
	return c
}

// SetSecurityGroups replaces an ENI's groups.
func (w *World) SetSecurityGroups(eniID string, groups ...string) error {
	return w.modify(eniID, func(e *ENI) error {
		if len(groups) == 0 {
			return fail(codeMissingParameter, "The request must contain the parameter groups")
		}
		if err := w.checkGroups(groups, e.VPCID); err != nil {
			return err
		}
		e.SecurityGroups = slices.Clone(groups)
		return nil
	})
}

// SetSourceDestCheck switches an ENI's source/destination check.
func (w *World) SetSourceDestCheck(eniID string, on bool) error {
	return w.modify(eniID, func(e *ENI) error {
		e.SourceDestCheck = on
		return nil
	})
}

// SetDescription replaces an ENI's description.
func (w *World) SetDescription(eniID, description string) error {
	return w.modify(eniID, func(e *ENI) error {
		e.Description = description
		return nil
	})
}

// SetDeleteOnTermination sets whether the ENI is deleted with its instance.
func (w *World) SetDeleteOnTermination(eniID, attachmentID string, on bool) error {
	return w.modify(eniID, func(e *ENI) error {
		if e.Attachment.ID != attachmentID || attachmentID == "" {
			return noAttachment(attachmentID)
		}
		e.Attachment.DeleteOnTermination = on
		return nil
	})
}

func (w *World) modify(eniID string, f func(*ENI) error) error {
	return w.update(func() error {
		e := w.enis[eniID]
		if e == nil {
			return noENI(eniID)
		}
		if err := f(e); err != nil {
			return err
		}
		w.emit(w.eniChange(ENIModified, e, nil))
		w.refreshENI(e)
		return nil
	})
}
