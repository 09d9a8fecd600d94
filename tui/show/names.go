package show

import (
	"iter"
	"net/netip"
	"strings"
)

// Domain returns the common part of all node names from their first dot on, as the nodes of a VPC
// share it; "" if they differ, or if one is an IP address, which has no domain.
func Domain(names iter.Seq[string]) string {
	domain, first := "", true
	for name := range names {
		dot := strings.IndexByte(name, '.')
		if dot <= 0 || dot == len(name)-1 || isAddress(name) || !first && name[dot:] != domain {
			return ""
		}
		domain, first = name[dot:], false
	}
	return domain
}

// isAddress reports an IP address, with or without a port, as opposed to a name.
func isAddress(name string) bool {
	if _, err := netip.ParseAddrPort(name); err == nil {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
