package rpcserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// maxSocketPath is sun_path less its final NUL (unix(7)).
const maxSocketPath = 107

// newSuffix names a socket while its mode is not set yet.
const newSuffix = ".new"

// ErrInUse means that another process answers on the socket.
var ErrInUse = errors.New("another process is serving it")

// socket is a listener that was moved to its name after its mode was set, so that it
// is never reachable with a wider one.
type socket struct {
	*net.UnixListener
	path  string
	inode fs.FileInfo
	once  sync.Once
	err   error
}

func listen(ctx context.Context, path string, mode fs.FileMode) (*socket, error) {
	s, err := listenAt(ctx, path, mode)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return s, nil
}

func listenAt(ctx context.Context, path string, mode fs.FileMode) (*socket, error) {
	if n := len(path) + len(newSuffix); n > maxSocketPath {
		return nil, fmt.Errorf("path has %d bytes, at most %d are possible", len(path), maxSocketPath-len(newSuffix))
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := checkStale(ctx, path); err != nil {
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
	return &socket{UnixListener: l, path: path, inode: inode}, nil
}

// makeDir leaves the mode of a directory alone that exists, which is a host path.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, modeDir); err != nil {
		return err
	}
	return os.Chmod(dir, modeDir) // whatever the umask is
}

func publish(temp, path string, mode fs.FileMode) (fs.FileInfo, error) {
	if err := os.Chmod(temp, mode); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// checkStale fails unless path is free or the socket of a process that is gone. Such
// a socket is replaced by the rename in publish.
func checkStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("a file that is not a socket is in its place (%s)", info.Mode().Type())
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(ErrInUse, conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("probe whether it is in use: %w", err)
}

// Close stops listening and removes the socket file, if it is still this one.
func (s *socket) Close() error {
	s.once.Do(func() {
		s.err = s.UnixListener.Close()
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.inode) {
			s.err = errors.Join(s.err, os.Remove(s.path))
		}
	})
	return s.err
}
