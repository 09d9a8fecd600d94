package rtnl

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// NeighbourEntry is an entry of the kernel's neighbour table.
type NeighbourEntry struct {
	netstate.Neighbour
	State uint16 // unix.NUD_*
}

// Neighbours lists the neighbour entries of a family on all links.
func (c *Conn) Neighbours(fam uint8) ([]NeighbourEntry, error) {
	var out []NeighbourEntry
	err := c.dump("neighbours", unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, func() { out = out[:0] }, func(b *Batch) {
		b.buf = append(b.buf, fam, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}, func(body []byte) error {
		n, err := parseNeighbour(body)
		if err == nil && body[0] == fam {
			out = append(out, n)
		}
		return err
	})
	return out, err
}

const sizeofNeighbourHeader = 12

func parseNeighbour(body []byte) (NeighbourEntry, error) {
	if len(body) < sizeofNeighbourHeader {
		return NeighbourEntry{}, errShort
	}
	n := NeighbourEntry{State: native.Uint16(body[8:])}
	n.Link = int32(native.Uint32(body[4:]))
	err := eachAttr(body[sizeofNeighbourHeader:], func(kind uint16, value []byte) {
		switch kind {
		case unix.NDA_DST:
			n.IP, _ = netip.AddrFromSlice(value)
		case unix.NDA_LLADDR:
			if len(value) == len(n.MAC) {
				n.MAC = netstate.MAC(value)
			}
		}
	})
	return n, err
}
