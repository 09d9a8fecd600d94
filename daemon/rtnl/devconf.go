package rtnl

import "golang.org/x/sys/unix"

// RPFilter is the number of the setting rp_filter (IPV4_DEVCONF_RP_FILTER,
// include/uapi/linux/ip.h).
const RPFilter = 8

// LinkIPv4Conf sets a net.ipv4.conf setting of a link, even where /proc/sys is read-only,
// as in unprivileged containers.
func (b *Batch) LinkIPv4Conf(index int32, setting uint16, value uint32) {
	const inetConf = 1 // IFLA_INET_CONF
	b.begin("set link setting", unix.RTM_NEWLINK, 0)
	b.ifinfo(index, 0, 0)
	spec := b.nest(unix.IFLA_AF_SPEC)
	inet := b.nest(unix.AF_INET)
	conf := b.nest(inetConf)
	b.attrU32(setting, value)
	b.endNest(conf)
	b.endNest(inet)
	b.endNest(spec)
	b.end()
}

// LinkNoIPv6Address stops the kernel from generating IPv6 addresses for a link.
// EAFNOSUPPORT: the kernel has no IPv6.
func (b *Batch) LinkNoIPv6Address(index int32) {
	const (
		addrGenMode = 8 // IFLA_INET6_ADDR_GEN_MODE
		none        = 1 // IN6_ADDR_GEN_MODE_NONE
	)
	b.begin("set link address mode", unix.RTM_NEWLINK, 0)
	b.ifinfo(index, 0, 0)
	spec := b.nest(unix.IFLA_AF_SPEC)
	inet6 := b.nest(unix.AF_INET6)
	b.attr(addrGenMode, []byte{none})
	b.endNest(inet6)
	b.endNest(spec)
	b.end()
}
