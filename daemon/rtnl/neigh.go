package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// NeighAdd adds a permanent entry. EEXIST: the kernel has one for that address.
func (b *Batch) NeighAdd(n netstate.Neighbour) {
	b.begin("add neighbour", unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b.neigh(n)
}

// NeighReplace adds a permanent entry, replacing an existing one.
func (b *Batch) NeighReplace(n netstate.Neighbour) {
	b.begin("replace neighbour", unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	b.neigh(n)
}

func (b *Batch) neigh(n netstate.Neighbour) {
	b.buf = append(b.buf, Family(n.IP), 0, 0, 0)
	b.buf = appendU32(b.buf, uint32(n.Link))
	b.buf = appendU16(b.buf, unix.NUD_PERMANENT)
	b.buf = append(b.buf, 0, unix.RTN_UNICAST)
	b.attrAddr(unix.NDA_DST, n.IP)
	b.attr(unix.NDA_LLADDR, n.MAC[:])
	b.end()
}
