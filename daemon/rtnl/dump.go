package rtnl

import (
	"errors"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// dumpTries bounds how often a dump is repeated because of changes during it. On a busy
// node perhaps every other dump is interrupted, so 16 interruptions in a row have another
// cause.
const dumpTries = 16

var errInterrupted = errors.New("dump interrupted by a change")

// Links lists the links of the namespace.
func (c *Conn) Links() ([]netstate.Link, error) {
	var out []netstate.Link
	err := c.dump("links", unix.RTM_GETLINK, unix.RTM_NEWLINK, func() { out = out[:0] }, func(b *Batch) {
		b.ifinfo(0, 0, 0)
	}, func(body []byte) error {
		l, err := parseLink(body)
		out = append(out, l)
		return err
	})
	return out, err
}

// LinkByName finds one link without a dump.
func (c *Conn) LinkByName(name string) (netstate.Link, bool, error) {
	return c.link(func(b *Batch) {
		b.ifinfo(0, 0, 0)
		b.attrText(unix.IFLA_IFNAME, name)
	})
}

// LinkByIndex finds one link without a dump.
func (c *Conn) LinkByIndex(index int32) (netstate.Link, bool, error) {
	return c.link(func(b *Batch) { b.ifinfo(index, 0, 0) })
}

func (c *Conn) link(request func(*Batch)) (netstate.Link, bool, error) {
	var b Batch
	b.begin("get link", unix.RTM_GETLINK, 0)
	request(&b)
	b.end()
	c.seq++
	native.PutUint32(b.buf[8:], c.seq)
	if err := c.send(b.buf); err != nil {
		return netstate.Link{}, false, err
	}
	for {
		answer, err := c.receive(recvSize)
		if err != nil {
			return netstate.Link{}, false, err
		}
		for len(answer) > 0 {
			msg, rest, err := cutMessage(answer)
			if err != nil {
				return netstate.Link{}, false, err
			}
			answer = rest
			if msg.seq != c.seq {
				continue
			}
			switch msg.kind {
			case unix.RTM_NEWLINK:
				l, err := parseLink(msg.body)
				return l, err == nil, err
			case unix.NLMSG_ERROR:
				errno, detail, err := msg.errno()
				if err != nil || errno == 0 || errno == unix.ENODEV {
					return netstate.Link{}, false, err
				}
				return netstate.Link{}, false, &Error{Op: "get link", Errno: errno, Detail: detail}
			}
		}
	}
}

func parseLink(body []byte) (netstate.Link, error) {
	if len(body) < unix.SizeofIfInfomsg {
		return netstate.Link{}, errShort
	}
	l := netstate.Link{Index: int32(native.Uint32(body[4:])), Flags: native.Uint32(body[8:])}
	err := eachAttr(body[unix.SizeofIfInfomsg:], func(kind uint16, value []byte) {
		switch kind {
		case unix.IFLA_IFNAME:
			l.Name = text(value)
		case unix.IFLA_ADDRESS:
			if len(value) == len(l.MAC) {
				l.MAC = netstate.MAC(value)
			}
		case unix.IFLA_MTU:
			l.MTU = int(u32(value))
		case unix.IFLA_LINK:
			l.Parent = int32(u32(value))
		case unix.IFLA_LINKINFO:
			_ = eachAttr(value, func(kind uint16, value []byte) {
				switch kind {
				case unix.IFLA_INFO_KIND:
					l.Kind = text(value)
				case unix.IFLA_INFO_DATA: // after the kind
					if l.Kind == "vlan" {
						l.VLAN = vlanID(value)
					}
				}
			})
		}
	})
	return l, err
}

func vlanID(data []byte) (id int) {
	_ = eachAttr(data, func(kind uint16, value []byte) {
		if kind == unix.IFLA_VLAN_ID && len(value) >= 2 {
			id = int(native.Uint16(value))
		}
	})
	return id
}

// Rules lists the policy rules of a family (unix.AF_INET, unix.AF_INET6) that look up a
// table. A kernel without the family, or without policy rules for it, yields none.
func (c *Conn) Rules(fam uint8) ([]netstate.Rule, error) {
	list, err := c.ListedRules(fam)
	out := make([]netstate.Rule, len(list))
	for i := range list {
		out[i] = list[i].Rule
	}
	return out, err
}

// ListedRules does the same as Rules, with what the kernel adds to them.
func (c *Conn) ListedRules(fam uint8) ([]ListedRule, error) {
	var out []ListedRule
	err := c.dump("rules", unix.RTM_GETRULE, unix.RTM_NEWRULE, func() { out = out[:0] }, func(b *Batch) {
		b.buf = append(b.buf, fam, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}, func(body []byte) error {
		r, ok, err := parseRule(body)
		if ok {
			out = append(out, r)
		}
		return err
	})
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil
	}
	return out, err
}

const sizeofRuleHeader = 12

func parseRule(body []byte) (ListedRule, bool, error) {
	if len(body) < sizeofRuleHeader {
		return ListedRule{}, false, errShort
	}
	flags, service := native.Uint32(body[8:]), body[3]
	r := ListedRule{
		Rule:     netstate.Rule{Table: int(body[4]), IPv6: body[0] == unix.AF_INET6, Other: flags&unix.FIB_RULE_INVERT != 0 || service != 0},
		Detached: flags&unix.FIB_RULE_IIF_DETACHED != 0,
	}
	err := eachAttr(body[sizeofRuleHeader:], func(kind uint16, value []byte) {
		switch kind {
		case unix.FRA_SRC:
			r.From = prefix(value, int(body[2]))
		case unix.FRA_DST:
			r.To = prefix(value, int(body[1]))
		case unix.FRA_PRIORITY:
			r.Priority = int(u32(value))
		case unix.FRA_TABLE:
			r.Table = int(u32(value))
		case unix.FRA_FWMARK:
			r.Mark = u32(value)
		case unix.FRA_FWMASK:
			r.Mask = u32(value)
		case unix.FRA_IIFNAME:
			r.InLink = text(value)
		case unix.FRA_IP_PROTO:
			if len(value) > 0 {
				r.Protocol = value[0]
			}
		case unix.FRA_PROTOCOL:
			if len(value) > 0 && value[0] != unix.RTPROT_KERNEL {
				r.Maker = value[0]
			}
		default:
			r.Other = r.Other || furtherCondition(kind, value)
		}
	})
	return r, body[7] == unix.FR_ACT_TO_TBL, err
}

// furtherCondition reports whether an attribute restricts a rule in a way that [netstate.Rule] has
// no member for. The kernel also lists some that mean "not restricted".
func furtherCondition(kind uint16, value []byte) bool {
	switch kind {
	case unix.FRA_SUPPRESS_PREFIXLEN, unix.FRA_SUPPRESS_IFGROUP:
		return u32(value) != math.MaxUint32
	case unix.FRA_TUN_ID, unix.FRA_OIFNAME, unix.FRA_L3MDEV, unix.FRA_UID_RANGE, unix.FRA_SPORT_RANGE, unix.FRA_DPORT_RANGE:
		return true
	}
	return false
}

// Routes lists the unicast routes of a family in one table.
func (c *Conn) Routes(fam uint8, table int) ([]netstate.Route, error) {
	return c.routes(fam, func(r netstate.Route) bool { return r.Table == table })
}

// AllRoutes lists the unicast routes of a family in all tables.
func (c *Conn) AllRoutes(fam uint8) ([]netstate.Route, error) {
	return c.routes(fam, func(netstate.Route) bool { return true })
}

func (c *Conn) routes(fam uint8, keep func(netstate.Route) bool) ([]netstate.Route, error) {
	var out []netstate.Route
	err := c.dump("routes", unix.RTM_GETROUTE, unix.RTM_NEWROUTE, func() { out = out[:0] }, func(b *Batch) {
		b.buf = append(b.buf, fam, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}, func(body []byte) error {
		r, ok, err := parseRoute(body)
		// A kernel without the family lists the routes of the families it has.
		if ok && body[0] == fam && keep(r) {
			out = append(out, r)
		}
		return err
	})
	return out, err
}

func parseRoute(body []byte) (netstate.Route, bool, error) {
	if len(body) < unix.SizeofRtMsg {
		return netstate.Route{}, false, errShort
	}
	fam, bits := body[0], int(body[1])
	r := netstate.Route{Table: int(body[4]), Scope: netstate.Scope(body[6])}
	r.Dst = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if fam == unix.AF_INET6 {
		r.Dst = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	err := eachAttr(body[unix.SizeofRtMsg:], func(kind uint16, value []byte) {
		switch kind {
		case unix.RTA_DST:
			r.Dst = prefix(value, bits)
		case unix.RTA_GATEWAY:
			r.Gateway, _ = netip.AddrFromSlice(value)
		case unix.RTA_PREFSRC:
			r.Source, _ = netip.AddrFromSlice(value)
		case unix.RTA_OIF:
			r.Link = int32(u32(value))
		case unix.RTA_TABLE:
			r.Table = int(u32(value))
		}
	})
	return r, body[7] == unix.RTN_UNICAST, err
}

// Addresses lists the addresses of a family on all links.
func (c *Conn) Addresses(fam uint8) ([]netstate.Address, error) {
	var out []netstate.Address
	err := c.dump("addresses", unix.RTM_GETADDR, unix.RTM_NEWADDR, func() { out = out[:0] }, func(b *Batch) {
		b.buf = append(b.buf, fam, 0, 0, 0, 0, 0, 0, 0)
	}, func(body []byte) error {
		a, err := parseAddress(body)
		if err == nil && body[0] == fam {
			out = append(out, a)
		}
		return err
	})
	return out, err
}

func parseAddress(body []byte) (netstate.Address, error) {
	if len(body) < unix.SizeofIfAddrmsg {
		return netstate.Address{}, errShort
	}
	a := netstate.Address{Link: int32(native.Uint32(body[4:])), NoDAD: body[2]&unix.IFA_F_NODAD != 0, OnLink: body[3] == unix.RT_SCOPE_LINK}
	local := false // for a point-to-point link, IFA_ADDRESS is the peer's
	err := eachAttr(body[unix.SizeofIfAddrmsg:], func(kind uint16, value []byte) {
		if kind == unix.IFA_LOCAL || kind == unix.IFA_ADDRESS && !local {
			a.Prefix = prefix(value, int(body[1]))
			local = kind == unix.IFA_LOCAL
		}
		if kind == unix.IFA_CACHEINFO && len(value) >= 8 {
			a.Expires = u32(value[4:]) != math.MaxUint32 // struct ifa_cacheinfo, ifa_valid
		}
	})
	return a, err
}

func prefix(value []byte, bits int) netip.Prefix {
	ip, ok := netip.AddrFromSlice(value)
	if !ok {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(ip, bits)
}

// dump runs one dump request, again from the start if the kernel reports a change during
// it.
func (c *Conn) dump(what string, kind, answerKind uint16, reset func(), request func(*Batch), each func([]byte) error) error {
	var err error
	for range dumpTries {
		reset()
		err = c.dumpOnce(kind, answerKind, request, each)
		if !errors.Is(err, errInterrupted) && !errors.Is(err, unix.EBUSY) {
			break
		}
	}
	if err != nil {
		return &SocketError{Op: "list " + what + " by", Err: err}
	}
	return nil
}

func (c *Conn) dumpOnce(kind, answerKind uint16, request func(*Batch), each func([]byte) error) error {
	var b Batch
	b.begin("dump", kind, unix.NLM_F_DUMP)
	request(&b)
	b.end()
	c.seq++
	native.PutUint32(b.buf[8:], c.seq)
	if err := c.send(b.buf); err != nil {
		return err
	}
	interrupted := false
	for {
		answer, err := c.receive(recvSize)
		if err != nil {
			return err
		}
		for len(answer) > 0 {
			msg, rest, err := cutMessage(answer)
			if err != nil {
				return err
			}
			answer = rest
			if msg.seq != c.seq {
				continue
			}
			interrupted = interrupted || msg.flags&unix.NLM_F_DUMP_INTR != 0
			switch msg.kind {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR:
				return c.endOfDump(msg, interrupted)
			case answerKind:
				// An interrupted dump is still read to its end, so that the socket is clean
				// for the next try.
				if !interrupted {
					if err := each(msg.body); err != nil {
						return err
					}
				}
			}
		}
	}
}

func (c *Conn) endOfDump(msg reply, interrupted bool) error {
	errno := unix.Errno(0)
	if len(msg.body) >= 4 {
		errno = unix.Errno(-int32(native.Uint32(msg.body)))
	}
	switch {
	case interrupted || errno == unix.EINTR:
		return errInterrupted
	case errno != 0:
		return errno
	}
	return nil
}
