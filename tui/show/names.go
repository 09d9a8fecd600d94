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
		if dot <= 0 || dot == len(name)-1 || !first && name[dot:] != domain || isAddress(name) {
			return ""
		}
		domain, first = name[dot:], false
	}
	return domain
}

// isAddress reports an IP address, with or without a port, as opposed to a name. It is asked about every
// node after every change: most names begin with a letter and have no colon.
func isAddress(name string) bool {
	if (name[0] < '0' || name[0] > '9') && strings.IndexByte(name, ':') < 0 {
		return false
	}
	if _, err := netip.ParseAddrPort(name); err == nil {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
