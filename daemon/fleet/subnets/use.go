package subnets

import (
	"net/netip"

	"cnictl/daemon/fleet/store"
)

// Of a subnet of a VPC: EC2 keeps the first four addresses and the last one, and none is
// larger than a /16.
const (
	reserved  = 5
	largest   = 16 // bits of the largest subnet
	smallest  = 28 // bits of the smallest one
	nearlyOut = 0.95
)

// Usable is how many addresses an IPv4 subnet gives; 0 where the range is not one of a VPC.
func Usable(r netip.Prefix) int {
	if !r.IsValid() || !r.Addr().Is4() || r.Bits() < largest || r.Bits() > smallest {
		return 0
	}
	return 1<<(32-r.Bits()) - reserved
}

// Others is how many addresses others than the nodes read have; null when it is not known,
// as where EC2's count is older than the pools.
func Others(u store.SubnetUse) *int {
	usable := Usable(u.Range)
	if u.Available == nil || usable == 0 {
		return nil
	}
	others := usable - *u.Available - u.Held
	if others < 0 {
		return nil
	}
	return &others
}

// Full is the share of a subnet that is taken.
func Full(u store.SubnetUse) (float64, bool) {
	usable := Usable(u.Range)
	if usable == 0 || u.Available == nil {
		return 0, false
	}
	return 1 - float64(*u.Available)/float64(usable), true
}

// Short tells that a subnet is about to run out: less than a twentieth is free.
func Short(u store.SubnetUse) bool {
	full, ok := Full(u)
	return ok && NearlyFull(full) || u.Available != nil && *u.Available == 0
}

// NearlyFull tells a share that leaves less than a twentieth.
func NearlyFull(share float64) bool { return share > nearlyOut }
