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

	"cnictl/daemon/listen"
)

// socket is a listener whose file renew makes again if it is removed, without interrupting
// callers of Accept.
type socket struct {
	path string
	mode fs.FileMode

	mu     sync.Mutex // guards what follows
	now    *listen.Socket
	closed bool
	err    error // result of Close
}

func newSocket(ctx context.Context, path string, mode fs.FileMode) (*socket, error) {
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

func (s *socket) current() *listen.Socket {
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

func listenAt(ctx context.Context, path string, mode fs.FileMode) (*listen.Socket, error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return listen.Unix(ctx, path, mode)
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

// Close stops listening and removes the socket file, if it is still this one.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.err
	}
	s.closed = true
	s.err = s.now.Close()
	return s.err
}
