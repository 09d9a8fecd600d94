package rtnl

import "golang.org/x/sys/unix"

// RPFilter is the number of the setting rp_filter (IPV4_DEVCONF_RP_FILTER,
// include/uapi/linux/ip.h).
const RPFilter = 8

// LinkIPv4Conf makes a setting of net.ipv4.conf of a link, also where /proc/sys is
// read-only, as it is in containers that are not privileged.
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
