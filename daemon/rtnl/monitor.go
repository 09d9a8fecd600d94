package rtnl

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// NoticeKind says what a [Notice] reports.
type NoticeKind uint8

const (
	NoticeLink    NoticeKind = iota + 1 // a link was added or changed: Link
	NoticeNoLink                        // a link is gone: Link
	NoticeRoute                         // a route was added or replaced: Route
	NoticeNoRoute                       // a route is gone: Route
	NoticeAddress                       // a link got an address other than a link-local one: Address
	NoticeNoAddress
	NoticeRule // a policy rule was added: Rule
	NoticeNoRule
	NoticeSetting // a setting below net.ipv4.conf or net.ipv6.conf changed: Setting is the index of its link
)

// SettingOfAll is the Setting of the settings named all, and SettingOfDefault of those
// named default.
const (
	SettingOfAll     = -1 // NETCONFA_IFINDEX_ALL, include/uapi/linux/netconf.h
	SettingOfDefault = -2
)

// Notice is a change in the namespace that the kernel reports, whoever made it.
type Notice struct {
	Kind    NoticeKind
	Link    netstate.Link
	Route   netstate.Route
	Address netstate.Address
	Rule    netstate.Rule
	Setting int32
}

// Watch opens a socket that receives changes of links, addresses, routes, policy rules and
// settings in the namespace of the calling thread. It does not block; [Notices] decodes
// what is read from it. A read that fails with ENOBUFS means that notices were lost. New
// routes of the tables main and local that replace no other, and new rules with a priority,
// are left out: each ADD adds some.
func Watch() (fd int, err error) {
	groups := []int{
		unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV4_NETCONF, unix.RTNLGRP_IPV6_NETCONF,
	}
	return watch(unix.NETLINK_ROUTE, groups, routeFilter())
}

// watchBuffer holds notices while the reader is busy, in bytes. The kernel doubles it for
// its own bookkeeping, and without privileges limits it to net.core.rmem_max.
const watchBuffer = 1 << 20

// watch opens a socket that receives what a filter passes of its groups; a nil filter
// passes all.
func watch(protocol int, groups []int, filter []unix.SockFilter) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return -1, &SocketError{Op: "open a watch by", Err: err}
	}
	// SO_RCVBUFFORCE needs a privilege; without it a smaller buffer does no harm.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, watchBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, watchBuffer)
	}
	if len(filter) > 0 {
		err = attachFilter(fd, filter)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	for _, g := range groups {
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g)
		}
	}
	if err != nil {
		return -1, errors.Join(&SocketError{Op: "subscribe to changes by", Err: err}, unix.Close(fd))
	}
	return fd, nil
}

// Notices calls fn for each change in a datagram that was read from a socket of [Watch]. It
// skips what has no use here: link-local addresses, the kernel's own routes, rules that
// look up no table.
func Notices(datagram []byte, fn func(Notice)) error {
	for len(datagram) > 0 {
		msg, rest, err := cutMessage(datagram)
		if err != nil {
			return err
		}
		datagram = rest
		n, ok, err := msg.notice()
		if err != nil {
			return err
		}
		if ok {
			fn(n)
		}
	}
	return nil
}

func noticeKind(message uint16) NoticeKind {
	switch message {
	case unix.RTM_NEWLINK:
		return NoticeLink
	case unix.RTM_DELLINK:
		return NoticeNoLink
	case unix.RTM_NEWROUTE:
		return NoticeRoute
	case unix.RTM_DELROUTE:
		return NoticeNoRoute
	case unix.RTM_NEWADDR:
		return NoticeAddress
	case unix.RTM_DELADDR:
		return NoticeNoAddress
	case unix.RTM_NEWRULE:
		return NoticeRule
	case unix.RTM_DELRULE:
		return NoticeNoRule
	case unix.RTM_NEWNETCONF:
		return NoticeSetting
	}
	return 0
}

func (r reply) notice() (n Notice, ok bool, err error) {
	n.Kind = noticeKind(r.kind)
	switch n.Kind {
	case NoticeLink, NoticeNoLink:
		n.Link, err = parseLink(r.body)
		// Bridges report their ports in messages of their own family.
		ok = len(r.body) > 0 && r.body[0] == unix.AF_UNSPEC
	case NoticeRoute, NoticeNoRoute:
		n.Route, ok, err = parseRoute(r.body)
		ok = ok && !ofKernel(r.body, n.Route)
	case NoticeAddress, NoticeNoAddress:
		n.Address, err = parseAddress(r.body)
		ok = n.Address.Prefix.IsValid() && !n.Address.Prefix.Addr().IsLinkLocalUnicast()
	case NoticeRule, NoticeNoRule:
		var listed ListedRule
		listed, ok, err = parseRule(r.body)
		n.Rule = listed.Rule
	case NoticeSetting:
		n.Setting, ok, err = parseSetting(r.body)
	}
	return n, ok && err == nil, err
}

// ofKernel reports whether a route is one to link-local or multicast addresses that the
// kernel adds to every link with IPv6, or an entry of its route cache.
func ofKernel(body []byte, r netstate.Route) bool {
	const rtmFCloned = 0x200 // RTM_F_CLONED
	cached := native.Uint32(body[8:])&rtmFCloned != 0
	return cached || r.Dst.Addr().Is6() && (r.Dst.Addr().IsLinkLocalUnicast() && r.Dst.Bits() == 64 || r.Dst.Addr().IsMulticast())
}

const (
	sizeofNetconfHeader = 4 // the family, padded
	netconfIfindex      = 1 // NETCONFA_IFINDEX
)

func parseSetting(body []byte) (link int32, ok bool, err error) {
	if len(body) < sizeofNetconfHeader {
		return 0, false, errShort
	}
	err = eachAttr(body[sizeofNetconfHeader:], func(kind uint16, value []byte) {
		if kind == netconfIfindex && len(value) >= 4 {
			link, ok = int32(u32(value)), true
		}
	})
	return link, ok, err
}

// host returns the only address of a prefix, invalid if there are several.
func host(p netip.Prefix) netip.Addr {
	if !p.IsValid() || !p.IsSingleIP() {
		return netip.Addr{}
	}
	return p.Addr()
}

// Host returns the single address that a notice about a route or a rule concerns, invalid
// for other notices.
func (n Notice) Host() netip.Addr {
	switch n.Kind {
	case NoticeRoute, NoticeNoRoute:
		return host(n.Route.Dst)
	case NoticeRule, NoticeNoRule:
		if to := host(n.Rule.To); to.IsValid() {
			return to
		}
		return host(n.Rule.From)
	}
	return netip.Addr{}
}
