// Package unixsocket distinguishes a dead process's socket file from one that is served,
// before a server replaces it.
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
