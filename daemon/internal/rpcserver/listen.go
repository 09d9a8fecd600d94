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

// maxSocketPath is the size of sun_path without the final NUL (unix(7)).
const maxSocketPath = 107

// newSuffix marks a socket whose mode is not set yet.
const newSuffix = ".new"

// socket is a listener whose file gets its name only after its mode is set, so that it is
// never reachable with a wider mode. If the file is removed, renew makes a new one without
// interrupting callers of Accept.
type socket struct {
	path string
	mode fs.FileMode

	mu     sync.Mutex // guards what follows
	now    *listening
	closed bool
	err    error // result of Close
}

// listening is a listener and its file.
type listening struct {
	*net.UnixListener
	inode fs.FileInfo
}

func listen(ctx context.Context, path string, mode fs.FileMode) (*socket, error) {
	l, err := listenAt(ctx, path, mode)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &socket{path: path, mode: mode, now: l}, nil
}

// renew listens again if the file is gone, and reports whether it was.
func (s *socket) renew(ctx context.Context) (renewed bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Lstat(s.path); s.closed || !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	l, err := listenAt(ctx, s.path, s.mode)
	if err != nil {
		return false, fmt.Errorf("listen on %s: %w", s.path, err)
	}
	old := s.now
	s.now = l
	return true, old.Close() // callers of Accept continue on the new one
}

func (s *socket) current() *listening {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// AcceptUnix accepts a connection from the current listener.
func (s *socket) AcceptUnix() (*net.UnixConn, error) {
	for {
		l := s.current()
		conn, err := l.AcceptUnix()
		if err == nil || s.current() == l {
			return conn, err
		}
	}
}

// Accept is AcceptUnix for gRPC.
func (s *socket) Accept() (net.Conn, error) {
	conn, err := s.AcceptUnix()
	if err != nil {
		return nil, err // not conn: a nil pointer in the interface would not be nil
	}
	return conn, nil
}

// Addr returns the address that the listener was created with.
func (s *socket) Addr() net.Addr { return s.current().Addr() }

func listenAt(ctx context.Context, path string, mode fs.FileMode) (*listening, error) {
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
	return &listening{l, inode}, nil
}

// makeDir creates a directory. It leaves an existing one, which is a host path, unchanged.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, modeDir); err != nil {
		return err
	}
	return os.Chmod(dir, modeDir) // whatever the umask is
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

// Close stops listening and removes the socket file, if it is still this one.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.err
	}
	s.closed = true
	s.err = s.now.Close()
	if file, err := os.Lstat(s.path); err == nil && os.SameFile(file, s.now.inode) {
		if err := os.Remove(s.path); !errors.Is(err, fs.ErrNotExist) { // otherwise removed meanwhile
			s.err = errors.Join(s.err, err)
		}
	}
	return s.err
}
