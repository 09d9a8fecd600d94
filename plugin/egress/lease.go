package egress

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// lease is a file of host-local, named after the address.
type lease struct {
	address     netip.Addr
	containerID string
	ifName      string // empty in files of old releases
}

// defaultDataDir is host-local's default, for configurations without dataDir.
const defaultDataDir = "/var/lib/cni/networks"

func (c *command) leaseDir() string {
	return filepath.Join(cmp.Or(c.conf.IPAM.DataDir, defaultDataDir), c.conf.Name)
}

// leases lists the leases that match. A missing directory has none.
func (c *command) leases(match func(lease) bool) (out []lease, _ error) {
	dir := c.leaseDir()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		address, err := netip.ParseAddr(e.Name())
		if err != nil || address.Zone() != "" || !e.Type().IsRegular() {
			continue // lock, last_reserved_ip.0
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // released in the meantime
		}
		if err != nil {
			return nil, err
		}
		id, ifName, _ := strings.Cut(string(bytes.TrimSpace(text)), "\n")
		if l := (lease{address.Unmap(), strings.TrimSpace(id), ifName}); match(l) {
			out = append(out, l)
		}
	}
	return out, nil
}

// own matches the leases of this attachment.
func (c *command) own(l lease) bool {
	return l.containerID == c.ContainerID && (l.ifName == c.IfName || l.ifName == "")
}
