package apply

import (
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Netns is the network namespace of a pod, held open.
type Netns struct{ fd int }

// NetnsError means that a path is not a network namespace: statfs failed (Err) or found
// another file system (Magic).
type NetnsError struct {
	Path  string
	Err   error
	Magic int64 // of the path's file system, if Err is nil
}

func (e *NetnsError) Error() string {
	if e.Err != nil {
		return "open network namespace " + strconv.Quote(e.Path) + ": " + e.Err.Error()
	}
	return "open network namespace " + strconv.Quote(e.Path) + ": file system type 0x" + strconv.FormatInt(e.Magic, 16) + " has no namespaces"
}

func (e *NetnsError) Unwrap() error { return e.Err }

// OpenNetns opens a namespace by path and checks that it is one. It never blocks,
// whatever the path is.
func OpenNetns(path string) (*Netns, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &NetnsError{Path: path, Err: err}
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		unix.Close(fd)
		return nil, &NetnsError{Path: path, Err: err}
	}
	if fs.Type != unix.NSFS_MAGIC && fs.Type != unix.PROC_SUPER_MAGIC {
		unix.Close(fd)
		return nil, &NetnsError{Path: path, Magic: int64(fs.Type)}
	}
	return &Netns{fd: fd}, nil
}

// Close releases the namespace.
func (n *Netns) Close() error { return unix.Close(n.fd) }

// do runs f on a thread in the namespace. The thread ends with f, so it need not return to
// its namespace, and no other goroutine runs on it.
func (n *Netns) do(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(n.fd, unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
