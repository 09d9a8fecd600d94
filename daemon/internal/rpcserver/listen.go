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

	"cnictl/daemon/internal/unixsocket"
)

// maxSocketPath is sun_path less its final NUL (unix(7)).
const maxSocketPath = 107

// newSuffix names a socket while its mode is not set yet.
const newSuffix = ".new"

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
	if _, err := unixsocket.Stale(ctx, path); err != nil { // a stale one is replaced by publish
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
