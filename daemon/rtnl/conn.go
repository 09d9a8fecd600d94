package rtnl

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Conn is one rtnetlink socket, or in DeleteFlows one of netfilter's.
type Conn struct {
	fd   int
	seq  uint32
	recv []byte
}

// SocketError is a failure of the socket itself, not of a change.
type SocketError struct {
	Op  string // open, send, receive, enter, list ...
	Err error
}

func (e *SocketError) Error() string { return e.Op + " rtnetlink: " + e.Err.Error() }
func (e *SocketError) Unwrap() error { return e.Err }

var errLong = errors.New("answer exceeds the buffer")

// recvSize holds any single answer of the kernel: it splits a dump into pieces of at most
// 32 KiB (netlink_dump in net/netlink/af_netlink.c).
const recvSize = 32 << 10

// ackSize holds the answers to changes: error header and extended text.
const ackSize = 4 << 10

// Open opens a socket in the network namespace of the calling thread.
func Open() (*Conn, error) { return open(unix.NETLINK_ROUTE) }

func open(protocol int) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, &SocketError{Op: "open", Err: err}
	}
	// Both options only make answers better or smaller; kernels before 4.12 and 4.3 lack
	// them.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	return &Conn{fd: fd}, nil
}

// Close closes the socket.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// Do sends the batch and waits until the kernel has processed all of it. The error is that
// of the first failed message (an *Error), or of the socket.
func (c *Conn) Do(b *Batch) error {
	if len(b.msgs) == 0 {
		return nil
	}
	first := c.seq + 1
	c.seq += uint32(len(b.msgs))
	b.seal(first)
	if err := c.send(b.buf); err != nil {
		return err
	}
	for {
		answer, err := c.receive(ackSize)
		if err != nil {
			return err
		}
		done, err := b.collect(answer, first)
		if err != nil {
			return err
		}
		if done {
			return b.failure()
		}
	}
}

// collect records the acknowledgements in one datagram; done is true after that of the last
// message. Answers to other requests (of an earlier call that gave up) are skipped.
func (b *Batch) collect(answer []byte, first uint32) (done bool, _ error) {
	for len(answer) > 0 {
		msg, rest, err := cutMessage(answer)
		if err != nil {
			return false, err
		}
		answer = rest
		i := msg.seq - first
		if msg.kind != unix.NLMSG_ERROR || i >= uint32(len(b.msgs)) {
			continue
		}
		errno, detail, err := msg.errno()
		if err != nil {
			return false, err
		}
		b.msgs[i].errno, b.msgs[i].detail = errno, detail
		done = done || int(i) == len(b.msgs)-1
	}
	return done, nil
}

func (c *Conn) send(b []byte) error {
	for {
		// Without an address, a netlink socket writes to the kernel.
		n, err := unix.Write(c.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return &SocketError{Op: "send", Err: err}
		case n != len(b):
			return &SocketError{Op: "send", Err: io.ErrShortWrite}
		}
		return nil
	}
}

// receive returns one datagram from the kernel, valid until the next call.
func (c *Conn) receive(size int) ([]byte, error) {
	if len(c.recv) < size {
		c.recv = make([]byte, size)
	}
	for {
		n, from, err := unix.Recvfrom(c.fd, c.recv, unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, &SocketError{Op: "receive", Err: err}
		case n > len(c.recv):
			return nil, &SocketError{Op: "receive", Err: errLong}
		}
		if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
			continue // not from the kernel
		}
		return c.recv[:n], nil
	}
}
