package rtnl

import (
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// ReadyWatch hears when links and IPv6 addresses come into use. The kernel answers a
// change at once and puts it to use a moment later: until then a link drops what is
// sent through it, an address what is sent to it, and IPv6 looks for a neighbour that
// did not answer only after a second.
type ReadyWatch struct{ conn *Conn }

// WatchReady listens in the network namespace of the calling thread.
func WatchReady() (*ReadyWatch, error) {
	c, err := Open()
	if err != nil {
		return nil, err
	}
	// A socket without an address is left out: 0 is the kernel's own.
	err = unix.Bind(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	for _, group := range [...]int{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV6_IFADDR} {
		if err == nil {
			err = unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group)
		}
	}
	if err != nil {
		c.Close()
		return nil, &SocketError{Op: "listen to changes by", Err: err}
	}
	return &ReadyWatch{c}, nil
}

// Close stops listening.
func (w *ReadyWatch) Close() error { return w.conn.Close() }

// ErrNotReady: a link or an address did not come into use in time.
var ErrNotReady = errors.New("it is still not in use")

// Wait returns once the links run and the addresses are usable, which were set up and
// added after WatchReady. At most one address of each link can be waited for.
func (w *ReadyWatch) Wait(links []int32, addresses []Address, timeout time.Duration) error {
	down := make(map[int32]bool, len(links))
	for _, l := range links {
		down[l] = true
	}
	tentative := make(map[int32]netip.Addr, len(addresses))
	for _, a := range addresses {
		tentative[a.Link] = a.Prefix.Addr()
	}
	deadline := time.Now().Add(timeout)
	for len(down)+len(tentative) > 0 {
		left := time.Until(deadline)
		if left <= 0 {
			return ErrNotReady
		}
		tv := unix.NsecToTimeval(int64(max(left, time.Microsecond)))
		if err := unix.SetsockoptTimeval(w.conn.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return &SocketError{Op: "listen to changes by", Err: err}
		}
		datagram, err := w.conn.receive(recvSize)
		switch {
		case errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ENOBUFS):
			return nil // the kernel has told more than fits: long enough
		case err != nil:
			return err
		}
		for len(datagram) > 0 {
			msg, rest, err := cutMessage(datagram)
			if err != nil {
				return err
			}
			datagram = rest
			switch msg.kind {
			case unix.RTM_NEWLINK:
				l, err := parseLink(msg.body)
				if err != nil {
					return err
				}
				if l.Flags&unix.IFF_RUNNING != 0 {
					delete(down, l.Index)
				}
			case unix.RTM_NEWADDR:
				a, err := parseAddress(msg.body)
				if err != nil {
					return err
				}
				const unusable = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED
				if msg.body[2]&unusable == 0 && tentative[a.Link] == a.Prefix.Addr() {
					delete(tentative, a.Link)
				}
			}
		}
	}
	return nil
}
