package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"cnictl/capacity/subnet"
	"cnictl/daemon/fleet/store"
)

const (
	largest    = 16 // prefix length of the largest subnet
	smallest   = 28 // prefix length of the smallest subnet
	nearlyFull = 0.95
)

// Usable is how many addresses an IPv4 subnet provides; 0 if the range is not that of a VPC
// subnet.
func Usable(r netip.Prefix) int {
	if !r.IsValid() || !r.Addr().Is4() || r.Bits() < largest || r.Bits() > smallest {
		return 0
	}
	return 1<<(32-r.Bits()) - subnet.Reserved
}

// OtherAddresses is how many addresses are held by anything except the read nodes; nil if unknown, such
// as when EC2's count is older than the pools.
func OtherAddresses(u store.SubnetUse) *int {
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

// FullShare is the share of a subnet that is in use, from 0 to 1; false if unknown.
func FullShare(u store.SubnetUse) (float64, bool) {
	usable := Usable(u.Range)
	if usable == 0 || u.Available == nil {
		return 0, false
	}
	return min(max(1-float64(*u.Available)/float64(usable), 0), 1), true
}

// FullText formats how full a subnet is; "" if unknown. It rounds down: a subnet that is not quite
// full never shows 100%.
func FullText(u store.SubnetUse) string {
	full, ok := FullShare(u)
	if !ok {
		return ""
	}
	return strconv.Itoa(int(full*100)) + "%"
}

// FullPercent is Full in percent, for filters and orders.
func FullPercent(u store.SubnetUse) (float64, bool) {
	full, ok := FullShare(u)
	return 100 * full, ok
}

// SubnetShort reports that a subnet is about to run out: it has no free address, or is nearly full.
func SubnetShort(u store.SubnetUse) bool {
	full, ok := FullShare(u)
	return ok && NearlyFull(full) || u.Available != nil && *u.Available == 0
}

// NearlyFull reports a share of at least 95 %: whatever shows as 95% or more is marked.
func NearlyFull(share float64) bool { return share >= nearlyFull }

// FullestSubnets returns the subnets whose fill is known, fullest first.
func FullestSubnets(all []store.SubnetUse) []store.SubnetUse {
	out := make([]store.SubnetUse, 0, len(all))
	for _, u := range all {
		if _, ok := FullShare(u); ok {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b store.SubnetUse) int {
		x, _ := FullShare(a)
		y, _ := FullShare(b)
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(a.ID, b.ID))
	})
	return out
}
