package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// maxSocketPath is the size of sun_path without the final NUL (unix(7)).
const maxSocketPath = 107

// newSuffix marks a socket whose mode is not set yet.
const newSuffix = ".new"

// Socket is a listening Unix socket and its file.
type Socket struct {
	*net.UnixListener
	path  string
	inode fs.FileInfo
}

// Unix listens on a Unix socket. The file gets its name only after its mode is set, so that it
// is never reachable with a wider one. It replaces the file of a dead process; what Stale calls
// an error is an error.
func Unix(ctx context.Context, path string, mode fs.FileMode) (*Socket, error) {
	if n := len(path) + len(newSuffix); n > maxSocketPath {
		return nil, fmt.Errorf("path has %d bytes, at most %d are possible", len(path), maxSocketPath-len(newSuffix))
	}
	if _, err := Stale(ctx, path); err != nil { // a stale one is replaced by publish
		return nil, err
	}
	temp := path + newSuffix
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove leftover: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // Close knows the final name
	inode, err := publish(temp, path, mode)
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(temp))
	}
	return &Socket{l, path, inode}, nil
}

// publish sets a socket's mode and gives it its name. It reads the inode before the rename,
// as the file may be removed right after it.
func publish(temp, path string, mode fs.FileMode) (fs.FileInfo, error) {
	if err := os.Chmod(temp, mode); err != nil {
		return nil, err
	}
	inode, err := os.Lstat(temp)
	if err != nil {
		return nil, err
	}
	return inode, os.Rename(temp, path)
}

// Close stops listening and removes the file, if it is still this socket's.
func (s *Socket) Close() error {
	err := s.UnixListener.Close()
	if file, missing := os.Lstat(s.path); missing != nil || !os.SameFile(file, s.inode) {
		return err
	}
	if removed := os.Remove(s.path); !errors.Is(removed, fs.ErrNotExist) { // otherwise removed meanwhile
		err = errors.Join(err, removed)
	}
	return err
}

// ErrInUse means that another process answers on the socket.
var ErrInUse = errors.New("another process is serving it")

// Stale returns true if the socket at the path is left over from a dead process and may be
// replaced, and false if nothing is there. A file that is not a socket, a socket that is
// served (ErrInUse) and one in an unknown state are errors, which do not name the path.
func Stale(ctx context.Context, path string) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return false, fmt.Errorf("a file that is not a socket is in its place (%s)", info.Mode().Type())
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return false, errors.Join(ErrInUse, conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		return true, nil
	case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		return false, nil
	}
	return false, fmt.Errorf("probe whether it is in use: %w", err)
}
