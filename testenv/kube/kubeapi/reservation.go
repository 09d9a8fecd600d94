package kubeapi

import (
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// reservation is a loopback port that stays bound, but not listened on, for as long as the
// server needs it. kube-apiserver cannot inherit a listener, and a port that was free a
// moment ago may be taken by now. The kernel never assigns a port held like this, while
// binding to exactly this port, with SO_REUSEPORT and as the same user, succeeds.
type reservation struct {
	fd      int
	number  int
	address string // host:port
}

func reserve() (*reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve port: socket: %w", err)
	}
	number, err := bindAny(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("reserve port: %w", err)
	}
	return &reservation{fd: fd, number: number, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(number))}, nil
}

// bindAny binds to a loopback port that the kernel chooses.
func bindAny(fd int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("set SO_REUSEPORT: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("bind: %w", err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("get socket name: %w", err)
	}
	return bound.(*unix.SockaddrInet4).Port, nil
}

func (r *reservation) release() error {
	if err := unix.Close(r.fd); err != nil {
		return fmt.Errorf("release port: %w", err)
	}
	return nil
}
