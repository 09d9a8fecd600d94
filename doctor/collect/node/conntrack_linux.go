package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// conntrack reads the usage of the table and of those of neighbours, and the allowances of the instance, which only
// the ENA driver counts.
func (c *collector) conntrack(context.Context) (out evidence.Conntrack, err error) {
	if out.Count, err = c.number("/proc/sys/net/netfilter/nf_conntrack_count"); err != nil {
		return out, err
	}
	if out.Max, err = c.number("/proc/sys/net/netfilter/nf_conntrack_max"); err != nil {
		return out, err
	}
	out.Neighbours.IPv4, out.Neighbours.IPv6 = c.neighbourTable("arp_cache", "ipv4"), c.neighbourTable("ndisc_cache", "ipv6")
	out.Allowance, err = allowances()
	return out, err
}

// neighbourTable reads a table of neighbours. Only the host's network namespace shows it.
func (c *collector) neighbourTable(table, family string) (out evidence.NeighbourTable) {
	stat, err := c.read("/proc/net/stat/" + table)
	if err != nil {
		return out
	}
	out = reading.NeighbourTable(string(stat))
	out.Max, _ = c.number("/proc/sys/net/" + family + "/neigh/default/gc_thresh3") // else it stays unknown
	return out
}

// number reads a file of one number.
func (c *collector) number(name string) (*int, error) {
	text, err := c.read(name)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: not a number", name)
	}
	return &n, nil
}

// allowances adds up the counters of the interfaces.
func allowances() (out evidence.Allowance, _ error) {
	list, err := ask((*rtnl.Conn).Links)
	if err != nil {
		return out, err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return out, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(socket)
	for _, l := range list {
		if l.Kind != "" || l.Flags&unix.IFF_LOOPBACK != 0 {
			continue
		}
		values, err := counters(socket, l.Name)
		switch {
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV): // it counts nothing, or has just gone
			continue
		case err != nil:
			return out, err
		}
		for name, n := range values {
			reading.AddAllowance(&out, name, n)
		}
	}
	return out, nil
}
