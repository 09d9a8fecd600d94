// Package unixsocket distinguishes the socket file of a process that is gone from one that is
// served, before a server takes its place.
package unixsocket

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

// ErrInUse means that another process answers on the socket.
var ErrInUse = errors.New("another process is serving it")

// Stale reports whether there is a socket at the path whose process is gone, which may
// be replaced; false: there is nothing. A file that is no socket, a socket that is
// served (ErrInUse), and one whose state is not known are errors that do not name the path.
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
	case errors.Is(err, fs.ErrNotExist): // meanwhile
		return false, nil
	}
	return false, fmt.Errorf("probe whether it is in use: %w", err)
}
