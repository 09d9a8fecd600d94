package show

import (
	"iter"
	"net/netip"
	"strings"
)

// Domain is what all names of nodes have from their first dot on, as the nodes of a VPC do;
// "" where they differ, and where one is an address: it has no domain.
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

// isAddress distinguishes an IP address, with or without port, from a name.
func isAddress(name string) bool {
	if _, err := netip.ParseAddrPort(name); err == nil {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
