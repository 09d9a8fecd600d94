package egress

import (
	"bytes"
	"errors"
	"net/netip"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultDataDir is host-local's when the configuration names none.
const defaultDataDir = "/var/lib/cni/networks"

// lease is a file of host-local: its name is the address.
type lease struct {
	address     netip.Addr
	containerID string
	ifName      string // empty in files of old releases
}

func (c *command) leaseDir() string {
	dir := c.conf.IPAM.DataDir
	if dir == "" {
		dir = defaultDataDir
	}
	return path.Join(dir, c.conf.Name)
}

// leases lists those that match. A directory that is not there has none.
func (c *command) leases(match func(lease) bool) (out []lease, _ error) {
	dir := c.leaseDir()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &fileError{"open " + dir, err}
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fileError{"read " + dir, err}
		}
		if n <= 0 {
			return out, nil
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			l, ok, err := readLeaseFile(fd, name)
			if err != nil {
				return nil, &fileError{"read " + path.Join(dir, name), err}
			}
			if ok && match(l) {
				out = append(out, l)
			}
		}
	}
}

// maxLease bounds what is read of a file: two names.
const maxLease = 1 << 10

func readLeaseFile(dir int, name string) (l lease, ok bool, _ error) {
	address, err := netip.ParseAddr(name)
	if err != nil || address.Zone() != "" {
		return l, false, nil // lock, last_reserved_ip.0
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return l, false, nil // released meanwhile
	}
	if err != nil {
		return l, false, err
	}
	defer unix.Close(fd)
	var text [maxLease]byte
	n, err := unix.Read(fd, text[:])
	if err != nil {
		return l, false, err
	}
	id, ifName, _ := strings.Cut(string(bytes.TrimSpace(text[:n])), "\n")
	return lease{address.Unmap(), strings.TrimSpace(id), ifName}, true, nil
}

// own matches the leases of this attachment.
func (c *command) own(l lease) bool {
	return l.containerID == c.ContainerID && (l.ifName == c.IfName || l.ifName == "")
}

// fileError is a file that cannot be read.
type fileError struct {
	what string
	err  error
}

func (e *fileError) Error() string { return e.what + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }
