package apply

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Netns is the network namespace of a pod, held open.
type Netns struct{ fd int }

// NetnsError is a path that is no network namespace. Statfs tells whether there is
// nothing to look at (Err is then the errno) or something else (Magic).
type NetnsError struct {
	Path  string
	Err   error
	Magic int64 // of the file system the path lies on, when Err is nil
}

func (e *NetnsError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("open network namespace %q: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("open network namespace %q: file system type %#x has no namespaces", e.Path, e.Magic)
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

// IsOwn reports whether it is the namespace of the calling thread.
func (n *Netns) IsOwn() (bool, error) {
	var own, other unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &own); err != nil {
		return false, fmt.Errorf("stat own network namespace: %w", err)
	}
	if err := unix.Fstat(n.fd, &other); err != nil {
		return false, fmt.Errorf("stat network namespace: %w", err)
	}
	return own.Dev == other.Dev && own.Ino == other.Ino, nil
}
