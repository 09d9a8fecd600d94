package rtnl

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gather wakes a reader of a watch once, however many notices come, until it is armed again:
// each new pod of a node causes a dozen changes, and a reader woken by each does
// nothing else. It is a file descriptor for a poller, ready while there is something to
// read for the first time after Arm.
type Gather struct {
	watch, epoll int
}

// NewGather takes over a watch, also when it fails.
func NewGather(watch int) (*Gather, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, errors.Join(&SocketError{Op: "wait for", Err: err}, unix.Close(watch))
	}
	g := &Gather{watch, epoll}
	// Non-blocking: Go's poller takes only such.
	err = unix.SetNonblock(epoll, true)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, watch, g.once())
	}
	if err != nil {
		return nil, errors.Join(&SocketError{Op: "wait for", Err: err}, unix.Close(watch), unix.Close(epoll))
	}
	return g, nil
}

func (g *Gather) once() *unix.EpollEvent {
	return &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(g.watch)}
}

// FD is what becomes ready. Who takes it closes it.
func (g *Gather) FD() int { return g.epoll }

// Woken takes the wake-up; false: it is not there yet.
func (g *Gather) Woken() bool {
	var events [1]unix.EpollEvent
	for {
		n, err := unix.EpollWait(g.epoll, events[:], 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0 || err != nil // an error is for Read to find
		}
	}
}

// Arm has the reader woken by what is there or comes.
func (g *Gather) Arm() error { return unix.EpollCtl(g.epoll, unix.EPOLL_CTL_MOD, g.watch, g.once()) }

// Read takes one datagram; EAGAIN: there is none.
func (g *Gather) Read(buf []byte) (n int, err error) {
	for {
		n, err = unix.Read(g.watch, buf)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// Close closes the watch, and not FD.
func (g *Gather) Close() error { return unix.Close(g.watch) }
