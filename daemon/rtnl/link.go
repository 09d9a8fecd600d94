package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// Veth creates a veth pair: the near end up in the namespace of the Conn, the far end down
// in the namespace that peerNS refers to. Both get the MTU and a transmit queue of length
// 0. EEXIST: the near index or either name is taken; EBUSY: the far index is taken.
func (b *Batch) Veth(near, far netstate.End, mtu int, peerNS int) {
	const vethInfoPeer = 1 // VETH_INFO_PEER, include/uapi/linux/veth.h
	b.begin("create veth pair", unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b.ifinfo(near.Index, unix.IFF_UP, unix.IFF_UP)
	b.vethEnd(near, mtu)
	info := b.nest(unix.IFLA_LINKINFO)
	b.attrText(unix.IFLA_INFO_KIND, "veth")
	data := b.nest(unix.IFLA_INFO_DATA)
	peer := b.nest(vethInfoPeer)
	b.ifinfo(far.Index, 0, 0)
	b.vethEnd(far, mtu)
	b.attrU32(unix.IFLA_NET_NS_FD, uint32(peerNS))
	b.endNest(peer)
	b.endNest(data)
	b.endNest(info)
	b.end()
}

func (b *Batch) vethEnd(e netstate.End, mtu int) {
	b.attrText(unix.IFLA_IFNAME, e.Name)
	b.attr(unix.IFLA_ADDRESS, e.MAC[:])
	b.attrU32(unix.IFLA_MTU, uint32(mtu))
	b.attrU32(unix.IFLA_TXQLEN, 0)
}

// LinkUp sets a link up.
func (b *Batch) LinkUp(index int32) {
	b.begin("set link up", unix.RTM_NEWLINK, 0)
	b.ifinfo(index, unix.IFF_UP, unix.IFF_UP)
	b.end()
}

// LinkMTU sets the MTU of a link.
func (b *Batch) LinkMTU(index int32, mtu int) {
	b.begin("set link mtu", unix.RTM_NEWLINK, 0)
	b.ifinfo(index, 0, 0)
	b.attrU32(unix.IFLA_MTU, uint32(mtu))
	b.end()
}

// LinkMAC sets the address of a link.
func (b *Batch) LinkMAC(index int32, mac netstate.MAC) {
	b.begin("set link address", unix.RTM_NEWLINK, 0)
	b.ifinfo(index, 0, 0)
	b.attr(unix.IFLA_ADDRESS, mac[:])
	b.end()
}

// LinkDel deletes a link; for a veth pair both ends disappear. Deleting a veth waits for a
// grace period of the kernel, 16 to 20 ms. ENODEV: it does not exist.
func (b *Batch) LinkDel(index int32) {
	b.begin("delete link", unix.RTM_DELLINK, 0)
	b.ifinfo(index, 0, 0)
	b.end()
}

// LinkDelName deletes a link by name.
func (b *Batch) LinkDelName(name string) {
	b.begin("delete link", unix.RTM_DELLINK, 0)
	b.ifinfo(0, 0, 0)
	b.attrText(unix.IFLA_IFNAME, name)
	b.end()
}
