package rtnl

import (
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// AddressWatch hears which IPv6 addresses become usable. The kernel answers a new
// address at once and puts it to use a moment later: until then it drops what is sent
// to it, and its neighbours look for it again only after a second.
type AddressWatch struct{ conn *Conn }

// WatchAddresses listens in the network namespace of the calling thread.
func WatchAddresses() (*AddressWatch, error) {
	c, err := Open()
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_IPV6_IFADDR); err != nil {
		c.Close()
		return nil, &SocketError{Op: "listen for addresses by", Err: err}
	}
	return &AddressWatch{c}, nil
}

// Close stops listening.
func (w *AddressWatch) Close() error { return w.conn.Close() }

// ErrAddressTentative: an address did not become usable in time.
var ErrAddressTentative = errors.New("the address is still tentative")

// Wait returns once all of the addresses, added after WatchAddresses, are usable.
func (w *AddressWatch) Wait(want []Address, timeout time.Duration) error {
	tv := unix.NsecToTimeval(int64(timeout)) // of each datagram: there is one for each change of an address
	if err := unix.SetsockoptTimeval(w.conn.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return &SocketError{Op: "listen for addresses by", Err: err}
	}
	left := make(map[int32]netip.Addr, len(want))
	for _, a := range want {
		left[a.Link] = a.Prefix.Addr()
	}
	for len(left) > 0 {
		datagram, err := w.conn.receive(recvSize)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return ErrAddressTentative
		case errors.Is(err, unix.ENOBUFS):
			return nil // the kernel had more to tell than fits: long enough
		case err != nil:
			return err
		}
		for len(datagram) > 0 {
			msg, rest, err := cutMessage(datagram)
			if err != nil {
				return err
			}
			datagram = rest
			if msg.kind != unix.RTM_NEWADDR {
				continue
			}
			a, err := parseAddress(msg.body)
			if err != nil {
				return err
			}
			tentative := msg.body[2]&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0
			if !tentative && left[a.Link] == a.Prefix.Addr() {
				delete(left, a.Link)
			}
		}
	}
	return nil
}
