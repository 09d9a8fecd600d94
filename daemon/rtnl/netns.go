package rtnl

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OpenIn opens a socket in the network namespace that nsFD is open on. It works on
// a throw-away goroutine locked to its thread; if the thread cannot return to its
// own namespace it dies with the goroutine.
func OpenIn(nsFD int) (*Conn, error) {
	type result struct {
		conn *Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		conn, restored, err := openOnThread(nsFD)
		if restored {
			runtime.UnlockOSThread()
		}
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

func openOnThread(nsFD int) (_ *Conn, restored bool, _ error) {
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, true, &SocketError{Op: "find own network namespace for", Err: err}
	}
	defer unix.Close(home)
	if err := unix.Setns(nsFD, unix.CLONE_NEWNET); err != nil {
		return nil, true, &SocketError{Op: "enter network namespace for", Err: err}
	}
	conn, err := Open()
	back := unix.Setns(home, unix.CLONE_NEWNET)
	return conn, back == nil, err
}

// Netns opens the network namespace of the socket, without a look at procfs. Kernels
// before 4.10 can't.
func (c *Conn) Netns() (fd int, err error) {
	if fd, err = unix.IoctlRetInt(c.fd, unix.SIOCGSKNS); err != nil {
		return -1, &SocketError{Op: "find the network namespace of", Err: err}
	}
	return fd, nil
}

// OpenAndStay moves the calling thread into the network namespace that nsFD is
// open on, for good, and opens a socket there. It is for a process of one locked
// thread that has nothing left to do in its own namespace except through sockets
// and files it holds already: it saves a thread or the way back.
func OpenAndStay(nsFD int) (*Conn, error) {
	if err := unix.Setns(nsFD, unix.CLONE_NEWNET); err != nil {
		return nil, &SocketError{Op: "enter network namespace for", Err: err}
	}
	return Open()
}
