package warmpool

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// subnetRefresh is the default of Policy.SubnetRefresh.
const subnetRefresh = time.Minute

// subnets tracks what this plan takes from each subnet.
type subnets struct {
	list    []Subnet // most free addresses first, unknown counts last
	refresh time.Duration
	now     time.Time
}

func newSubnets(s *Snapshot, p *Policy, now time.Time) subnets {
	sn := subnets{list: slices.Clone(s.Subnets), refresh: p.SubnetRefresh, now: now}
	if sn.refresh <= 0 {
		sn.refresh = subnetRefresh
	}
	return sn
}

// draw is the demand of one CIDR on a subnet.
type draw struct {
	addresses int  // of the IPv4 range: none for a /80
	block     bool // an aligned block must be free
}

// offer is how many of want CIDRs a subnet can give besides extra single addresses. If it is 0,
// the obstacle says what prevents it and until when.
func (sn *subnets) offer(s *Subnet, want, extra int, d draw) (int, obstacle) {
	if s.BackoffUntil.After(sn.now) {
		return 0, obstacle{kind: exhausted, subject: s.ID, until: s.BackoffUntil}
	}
	if d.block && s.PrefixBackoff.After(sn.now) {
		return 0, obstacle{kind: fragmented, subject: s.ID, until: s.PrefixBackoff}
	}
	switch left := s.AvailableIPs - extra; {
	case s.AvailableIPs < 0, d.addresses == 0 && left >= 0:
		return want, obstacle{}
	case d.addresses > 0 && left >= d.addresses:
		return min(want, left/d.addresses), obstacle{}
	}
	return 0, obstacle{kind: exhausted, subject: s.ID, until: sn.now.Add(sn.refresh)}
}

// take reserves addresses of a subnet for an action of this plan.
func (s *Subnet) take(addresses int) {
	if s.AvailableIPs >= 0 {
		s.AvailableIPs = max(0, s.AvailableIPs-addresses)
	}
}

// find returns the subnet with that ID, nil if it is not listed.
func (sn *subnets) find(id string) *Subnet {
	for i := range sn.list {
		if sn.list[i].ID == id {
			return &sn.list[i]
		}
	}
	return nil
}

// refused returns when the back-off ended, or will end, of a subnet that had no block when last
// asked; zero if it had one, or was never asked. The free count does not show whether it has a
// block now, so subnets that refused are asked after the others, the most recent last.
// Otherwise, while EC2 throttles as well, a request that fails again would each time use up the
// token that the next one needs.
func (s *Subnet) refused(d draw) time.Time {
	if s == nil || !d.block {
		return time.Time{}
	}
	return s.PrefixBackoff
}

// pick chooses the subnet of a new ENI that needs that many CIDRs: of those that can give at
// least one, the one that has not refused, or refused longest ago, and then the one with the
// most free addresses.
func (sn *subnets) pick(want int, d draw, blocked func(obstacle)) (id string, n int) {
	if len(sn.list) == 0 {
		return "", want
	}
	slices.SortStableFunc(sn.list, func(a, b Subnet) int {
		return cmp.Or(a.refused(d).Compare(b.refused(d)), b.AvailableIPs-a.AvailableIPs, strings.Compare(a.ID, b.ID))
	})
	for i := range sn.list {
		s := &sn.list[i]
		n, why := sn.offer(s, want, 1, d) // 1: the ENI's primary address
		if n > 0 {
			s.take(1 + n*d.addresses)
			return s.ID, n
		}
		blocked(why)
	}
	return "", 0
}
