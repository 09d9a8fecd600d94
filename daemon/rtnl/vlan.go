package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// VLAN creates an 802.1q device over a link, down. It gets the MTU of the link. EEXIST: the
// name or the id on that link is taken; EOPNOTSUPP: the kernel lacks such devices.
func (b *Batch) VLAN(name string, parent int32, id int, mac netstate.MAC) {
	b.begin("create vlan device", unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b.ifinfo(0, 0, 0)
	b.attrText(unix.IFLA_IFNAME, name)
	b.attr(unix.IFLA_ADDRESS, mac[:])
	b.attrU32(unix.IFLA_LINK, uint32(parent))
	info := b.nest(unix.IFLA_LINKINFO)
	b.attrText(unix.IFLA_INFO_KIND, "vlan")
	data := b.nest(unix.IFLA_INFO_DATA)
	b.attr(unix.IFLA_VLAN_ID, native.AppendUint16(nil, uint16(id)))
	b.endNest(data)
	b.endNest(info)
	b.end()
}
