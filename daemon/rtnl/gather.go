package rtnl

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gather wakes a reader of a watch once, however many notices arrive, until it is armed
// again. Each new pod of a node causes a dozen changes, and a reader woken by each would do
// nothing else. It is a file descriptor for a poller, ready at the first notice after Arm.
type Gather struct {
	watch, epoll int
}

// NewGather takes ownership of a watch, even if it fails.
func NewGather(watch int) (*Gather, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, errors.Join(&SocketError{Op: "wait for", Err: err}, unix.Close(watch))
	}
	g := &Gather{watch, epoll}
	// Non-blocking, because Go's poller requires it.
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

// FD returns the descriptor that becomes ready. The caller closes it.
func (g *Gather) FD() int { return g.epoll }

// Woken consumes the wake-up. It returns false if there is none yet.
func (g *Gather) Woken() bool {
	var events [1]unix.EpollEvent
	for {
		n, err := unix.EpollWait(g.epoll, events[:], 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0 || err != nil // Read will find the error
		}
	}
}

// Arm has the reader woken by pending or future notices.
func (g *Gather) Arm() error { return unix.EpollCtl(g.epoll, unix.EPOLL_CTL_MOD, g.watch, g.once()) }

// Read reads one datagram. EAGAIN: there is none.
func (g *Gather) Read(buf []byte) (n int, err error) {
	for {
		n, err = unix.Read(g.watch, buf)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// Close closes the watch, but not FD.
func (g *Gather) Close() error { return unix.Close(g.watch) }
