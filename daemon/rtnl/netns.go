package rtnl

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OpenIn opens a socket in the network namespace that nsFD refers to. It uses a temporary
// goroutine locked to its thread; if the thread cannot return to its own namespace, it ends
// with the goroutine.
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

// OpenAndStay opens a socket in the network namespace that nsFD refers to and leaves a
// thread of the process there for good. It is for a process that has nothing left to do in
// its own namespace except through sockets and files that it already holds.
//
// The goroutine is not locked to its thread at first, because locking makes the runtime
// start another thread, which takes longer than all of this. If the goroutine moves between
// the two calls, the socket's own namespace shows it, and the second try is locked.
func OpenAndStay(nsFD int) (*Conn, error) {
	c, err := enterAndOpen(nsFD)
	if err != nil {
		return nil, err
	}
	if inside, err := c.In(nsFD); err == nil && inside {
		return c, nil
	}
	c.Close()
	runtime.LockOSThread() // never unlocked: no other goroutine may use a thread in this namespace
	return enterAndOpen(nsFD)
}

func enterAndOpen(nsFD int) (*Conn, error) {
	if err := unix.Setns(nsFD, unix.CLONE_NEWNET); err != nil {
		return nil, &SocketError{Op: "enter network namespace for", Err: err}
	}
	return Open()
}

// In reports whether the socket is in the network namespace that nsFD refers to.
func (c *Conn) In(nsFD int) (bool, error) { return SameNetns(c.fd, nsFD) }

// SameNetns reports whether a socket of any kind is in the network namespace that nsFD
// refers to, without using procfs. It fails on kernels before 4.10.
func SameNetns(socket, nsFD int) (bool, error) {
	own, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if err != nil {
		return false, &SocketError{Op: "find the network namespace of", Err: err}
	}
	defer unix.Close(own)
	var a, b unix.Stat_t
	if err := unix.Fstat(own, &a); err != nil {
		return false, &SocketError{Op: "find the network namespace of", Err: err}
	}
	if err := unix.Fstat(nsFD, &b); err != nil {
		return false, &SocketError{Op: "find the network namespace of", Err: err}
	}
	return a.Dev == b.Dev && a.Ino == b.Ino, nil
}
