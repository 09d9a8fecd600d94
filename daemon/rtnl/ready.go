package rtnl

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// ReadyWatch reports when links and IPv6 addresses come into use. The kernel acknowledges a
// change at once but applies it a moment later: until then a link drops what is sent
// through it, an address what is sent to it, and IPv6 retries a neighbour that did not
// answer only after a second.
type ReadyWatch struct{ conn *Conn }

// WatchReady listens in the network namespace of the calling thread.
func WatchReady() (*ReadyWatch, error) {
	c, err := Open()
	if err != nil {
		return nil, err
	}
	// A socket without an address gets no notices: 0 is the kernel's own.
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
var ErrNotReady = errors.New("link or address not ready in time")

// Wait returns once the links run and the addresses are usable. They must have been set up
// and added after WatchReady.
func (w *ReadyWatch) Wait(links []int32, addresses []netstate.Address, timeout time.Duration) error {
	links, addresses = slices.Clone(links), slices.Clone(addresses)
	for deadline := time.Now().Add(timeout); len(links)+len(addresses) > 0; {
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
			return nil // more notices than fit: waited long enough
		case err != nil:
			return err
		}
		for len(datagram) > 0 {
			var msg reply
			if msg, datagram, err = cutMessage(datagram); err != nil {
				return err
			}
			if links, addresses, err = inUse(msg, links, addresses); err != nil {
				return err
			}
		}
	}
	return nil
}

// inUse removes from the lists what a message reports as in use.
func inUse(msg reply, links []int32, addresses []netstate.Address) ([]int32, []netstate.Address, error) {
	switch msg.kind {
	case unix.RTM_NEWLINK:
		l, err := parseLink(msg.body)
		if err != nil || l.Flags&unix.IFF_RUNNING == 0 {
			return links, addresses, err
		}
		links = slices.DeleteFunc(links, func(index int32) bool { return index == l.Index })
	case unix.RTM_NEWADDR:
		a, err := parseAddress(msg.body)
		if err != nil || msg.body[2]&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0 {
			return links, addresses, err
		}
		addresses = slices.DeleteFunc(addresses, func(want netstate.Address) bool { return want.Link == a.Link && want.Prefix.Addr() == a.Prefix.Addr() })
	}
	return links, addresses, nil
}
