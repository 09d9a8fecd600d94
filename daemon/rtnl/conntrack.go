package rtnl

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Messages and attributes of include/uapi/linux/netfilter/nfnetlink_conntrack.h.
const (
	ctNew      = unix.NFNL_SUBSYS_CTNETLINK << 8
	ctGet      = unix.NFNL_SUBSYS_CTNETLINK<<8 | 1
	ctDelete   = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2
	ctGetStats = unix.NFNL_SUBSYS_CTNETLINK<<8 | 5

	ctaTupleOrig  = 1
	ctaTupleReply = 2
	ctaID         = 12
	ctaZone       = 18

	ctaTupleIP = 1
	ctaV4Src   = 1
	ctaV4Dst   = 2
	ctaV6Src   = 3
	ctaV6Dst   = 4

	ctaStatsEntries = 1
)

// flowBatch is how many entries one send deletes.
const flowBatch = 64

// flowWait bounds each wait for the kernel's answer, which comes at once: without it, a
// kernel that does not answer would hold the caller for ever.
var flowWait = unix.Timeval{Sec: 5}

// DeleteFlows deletes the connection tracking entries, in the network namespace of the calling
// thread, that have an address for which of returns true as source or destination, in either
// direction: of an entry with DNAT, only the reply has the pod's address. It returns the number
// of deleted entries, also with an error. Where the kernel refuses to delete some, the others go
// all the same, and the error is the first refusal.
//
// It reads the whole table once. The kernel can filter a dump or a deletion only by one
// address in one of the four places, and the latter only since Linux 6.11.
func DeleteFlows(ctx context.Context, of func(netip.Addr) bool) (deleted int, _ error) {
	list, err := openFlows()
	if err != nil {
		return 0, err
	}
	defer list.Close()
	if n, err := list.flowCount(); err != nil || n == 0 {
		return 0, err // without entries, a dump would still take 10 ms to walk the hash table
	}
	// The kernel keeps its place in the table while entries are deleted, but a socket in the
	// middle of a dump cannot be used for anything else.
	change, err := openFlows()
	if err != nil {
		return 0, err
	}
	defer change.Close()
	d := flowDeleter{conn: change}
	err = list.dump("connections", ctGet, ctNew, func() {}, func(b *Batch) {
		b.nfgen(unix.AF_UNSPEC)
	}, func(body []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return d.take(body, of)
	})
	return d.deleted, errors.Join(err, d.flush(), d.refused)
}

func openFlows() (*Conn, error) {
	c, err := open(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &flowWait); err != nil {
		return nil, errors.Join(&SocketError{Op: "set up", Err: err}, c.Close())
	}
	return c, nil
}

// nfgen appends struct nfgenmsg.
func (b *Batch) nfgen(family uint8) { b.buf = append(b.buf, family, 0, 0, 0) }

// flowCount returns the number of the namespace's entries.
func (c *Conn) flowCount() (uint32, error) {
	var b Batch
	b.begin("count connections", ctGetStats, 0)
	b.nfgen(unix.AF_UNSPEC)
	b.end()
	c.seq++
	b.seal(c.seq)
	if err := c.send(b.buf); err != nil {
		return 0, err
	}
	count := uint32(0)
	for {
		answer, err := c.receive(recvSize)
		if err != nil {
			return 0, err
		}
		for len(answer) > 0 {
			msg, rest, err := cutMessage(answer)
			if err != nil {
				return 0, err
			}
			answer = rest
			switch {
			case msg.seq != c.seq:
			case msg.kind == unix.NLMSG_ERROR:
				errno, detail, err := msg.errno()
				if err == nil && errno != 0 {
					err = &Error{Op: "count connections", Errno: errno, Detail: detail}
				}
				return count, err
			case len(msg.body) >= sizeofNFGen:
				if err := eachAttr(msg.body[sizeofNFGen:], func(kind uint16, value []byte) {
					if kind == ctaStatsEntries && len(value) >= 4 {
						count = binary.BigEndian.Uint32(value)
					}
				}); err != nil {
					return 0, err
				}
			}
		}
	}
}

// flowDeleter deletes entries as a dump lists them, so that it never holds more than a few.
type flowDeleter struct {
	conn    *Conn
	batch   Batch
	deleted int
	refused error // the first *Error
}

// take deletes the entry of a dump's message if it has one of the addresses. Nearly all have
// none: it reads no more of them than the two tuples at their beginning, and allocates
// nothing.
func (d *flowDeleter) take(body []byte, of func(netip.Addr) bool) error {
	if len(body) < sizeofNFGen {
		return errShort
	}
	var tuple, id, zone []byte
	matches, tuples := false, 0
	for attrs := body[sizeofNFGen:]; len(attrs) >= unix.SizeofRtAttr && (matches || tuples < 2); {
		kind, value, rest, err := cutAttr(attrs)
		if err != nil {
			return err
		}
		attrs = rest
		switch kind {
		case ctaTupleOrig, ctaTupleReply:
			if tuples++; kind == ctaTupleOrig {
				tuple = value
			}
			has, err := tupleHas(value, of)
			if err != nil {
				return err
			}
			matches = matches || has
		case ctaID:
			id = value
		case ctaZone:
			zone = value
		}
	}
	if !matches || tuple == nil {
		return nil
	}
	b := &d.batch
	b.begin("delete connection", ctDelete, 0)
	b.nfgen(body[0])
	b.attr(ctaTupleOrig|unix.NLA_F_NESTED, tuple)
	if zone != nil {
		b.attr(ctaZone, zone)
	}
	if id != nil {
		b.attr(ctaID, id) // so that no newer entry of the same tuple is deleted
	}
	b.end()
	b.Tolerate(unix.ENOENT) // it has ended meanwhile
	if b.Len() < flowBatch {
		return nil
	}
	return d.flush()
}

// tupleHas reports whether an address of a tuple is one of those.
func tupleHas(tuple []byte, of func(netip.Addr) bool) (bool, error) {
	for len(tuple) >= unix.SizeofRtAttr {
		kind, value, rest, err := cutAttr(tuple)
		if err != nil {
			return false, err
		}
		if tuple = rest; kind != ctaTupleIP {
			continue
		}
		for len(value) >= unix.SizeofRtAttr {
			kind, address, rest, err := cutAttr(value)
			if err != nil {
				return false, err
			}
			value = rest
			switch kind {
			case ctaV4Src, ctaV4Dst, ctaV6Src, ctaV6Dst:
				if a, ok := netip.AddrFromSlice(address); ok && of(a) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// flush deletes the entries taken so far. It fails only if the socket does.
func (d *flowDeleter) flush() error {
	if d.batch.Len() == 0 {
		return nil
	}
	err := d.conn.Do(&d.batch)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		d.refused, err = cmp.Or(d.refused, err), nil
	}
	if err == nil {
		for i := range d.batch.Len() {
			if d.batch.Errno(i) == 0 {
				d.deleted++
			}
		}
	}
	d.batch.Reset()
	return err
}
