package hostnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
)

// DeleteFlows deletes the connection tracking entries of the node that have one of these
// addresses, in either direction, and returns how many there were.
func (h *Host) DeleteFlows(ctx context.Context, of func(netip.Addr) bool) (int, error) {
	n, err := rtnl.DeleteFlows(ctx, of)
	if err != nil {
		err = fmt.Errorf("delete connection tracking entries%s: %w", whyNoFlows(err), err)
	}
	return n, err
}

// whyNoFlows explains what is missing.
func whyNoFlows(err error) string {
	switch {
	case errors.Is(err, unix.EPERM):
		return " (the process lacks the capability NET_ADMIN)"
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT):
		return " (the node's kernel lacks ctnetlink: load the module nf_conntrack_netlink)"
	}
	return ""
}
