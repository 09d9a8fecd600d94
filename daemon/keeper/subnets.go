package keeper

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// subnetCache is the list of subnets as EC2 last described it.
type subnetCache struct {
	all        []resync.Subnet
	read       time.Time // when EC2 last answered; zero if never
	asked      time.Time // when it was last read without a plan that needs it
	expired    bool      // known to be out of date
	refreshing bool
	failed     BackoffTimer // of reading the list
	few        int          // fewer addresses than this are of no use
	low        BackoffTimer // while no usable subnet has addresses: when to read again
}

// subnetEvery is how often the list is read when no plan needs it: users read the counts, and
// the tags exclude ENIs; this also covers a failed read at the start. A thousand nodes make two
// requests a second.
const subnetEvery = 10 * time.Minute

// subnetMaxAge is how old the list may be when an ENI is created from it.
const subnetMaxAge = time.Minute

// outdated reports whether the free counts may have changed since they were read.
func (c *subnetCache) outdated(now time.Time) bool {
	return c.expired || now.Sub(c.read) > subnetMaxAge
}

// doubtful reports whether a count that is too low should no longer be believed.
func (c *subnetCache) doubtful(now time.Time) bool {
	if c.low.Until.IsZero() {
		return c.outdated(now)
	}
	return c.expired || !c.low.Running(now)
}

// stale reports whether the list should be read again before it is used.
func (c *subnetCache) stale(now time.Time) bool {
	return c.doubtful(now) && !c.failed.Running(now)
}

func (c *subnetCache) known() bool { return !c.read.IsZero() }

func (c *subnetCache) expire() { c.expired = true }

func (c *subnetCache) fill(subnets []resync.Subnet, p resync.SubnetPolicy, now time.Time, jitter Jitter) {
	c.all, c.read, c.expired = subnets, now, false
	if candidates := p.Candidates(c.all); !slices.ContainsFunc(candidates, func(s resync.Subnet) bool {
		return s.AvailableIPs == resync.Unknown || s.AvailableIPs >= c.few
	}) {
		c.low.Fail(now, now, cause.SubnetExhausted, ExhaustedFirst, ExhaustedMax, jitter)
		return
	}
	c.low.Succeed(now)
}

// take lowers the known free count by what an operation is about to use.
func (c *subnetCache) take(id string, addresses int) {
	for i := range c.all {
		if c.all[i].ID == id {
			c.all[i].AvailableIPs = max(0, c.all[i].AvailableIPs-addresses)
		}
	}
}

// emptied records that a subnet had fewer addresses than its free count said. The list is read
// again before the subnet is used again.
func (c *subnetCache) emptied(id string) {
	for i := range c.all {
		if c.all[i].ID == id {
			c.all[i].AvailableIPs = 0
		}
	}
	c.expire()
}

// unread reports whether a subnet was last seen with too few addresses and its free count
// should be read again before addresses are requested.
func (c *subnetCache) unread(id string, now time.Time) bool {
	if !c.stale(now) {
		return false
	}
	for i := range c.all {
		if c.all[i].ID == id {
			return c.all[i].AvailableIPs < c.few
		}
	}
	return false
}

// give raises the known free count by the addresses returned to EC2.
func (c *subnetCache) give(id string, addresses int) {
	c.take(id, -addresses)
}

// cidr is the block of a subnet; zero if unknown.
func (c *subnetCache) cidr(id string, ipv6 bool) netip.Prefix {
	for _, s := range c.all {
		switch {
		case s.ID != id:
		case ipv6:
			return s.IPv6CIDR
		default:
			return s.CIDR
		}
	}
	return netip.Prefix{}
}

// best is the usable subnet with the most free addresses, "" if there is none.
func (c *subnetCache) best(p resync.SubnetPolicy) string {
	if all := p.Candidates(c.all); len(all) > 0 {
		return all[0].ID
	}
	return ""
}

// full says that no usable subnet had addresses when EC2 was last asked, even if that is
// doubtful by now. It returns "" if one had.
func (c *subnetCache) full(p resync.SubnetPolicy, now time.Time) string {
	if c.low.Until.IsZero() {
		return ""
	}
	return cause.SubnetExhausted.Title() + ": " + c.best(p) + " had too few " + now.Sub(c.read).Round(100*time.Millisecond).String() + " ago; retrying"
}

// fewAddresses is how many of a subnet's IPv4 addresses an ENI with one prefix takes; a /80
// takes none.
func fewAddresses(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 17
}

// forPlanner lists the usable subnets. A free count that is too low and doubtful is passed on
// as unknown: otherwise a subnet that was full once would count as full forever, since only
// the wish for an ENI makes it read again.
func (c *subnetCache) forPlanner(p resync.SubnetPolicy, b backoffs, now time.Time) []warmpool.Subnet {
	candidates := p.Candidates(c.all)
	out := make([]warmpool.Subnet, len(candidates))
	for i, s := range candidates {
		if s.AvailableIPs < c.few && c.doubtful(now) {
			s.AvailableIPs = resync.Unknown
		}
		out[i] = warmpool.Subnet{
			ID: s.ID, AvailableIPs: s.AvailableIPs,
			BackoffUntil: until(b.subnet, s.ID), PrefixBackoff: until(b.subnetPrefixes, s.ID),
		}
	}
	return out
}

// gaveFewer records that EC2 assigned fewer addresses than an operation requested because the
// subnet has no more.
func (k *Keeper) gaveFewer(op *Operation, got []netip.Prefix) {
	if !k.settings.IPv6 && len(got) < op.IPs+op.Prefixes {
		k.subnets.emptied(op.SubnetID)
		k.refreshSubnets()
	}
}

func (k *Keeper) refreshSubnets() {
	if k.subnets.refreshing {
		return
	}
	k.subnets.refreshing = true
	k.begin(SubnetsTask{})
}

// SubnetsRead reports the result of DescribeSubnets.
type SubnetsRead struct {
	Subnets []resync.Subnet
	Err     error
}

func (m SubnetsRead) handle(k *Keeper, now time.Time) {
	k.subnets.refreshing = false
	if m.Err != nil {
		// Fail open: the last known list, or the node's own subnet, stays in use (upstream
		// stops here; docs/compatibility.md, 13.1-13).
		k.subnets.failed.Fail(now, now, CauseOf(m.Err), ThrottleFirst, ExhaustedMax, k.jitter)
		k.record(now, SubnetsFailed{Err: m.Err})
		return
	}
	k.subnets.failed.Succeed(now)
	before := k.subnets.low
	k.subnets.fill(m.Subnets, k.settings.Subnets, now, k.jitter)
	switch after := k.subnets.low; {
	case before.Until.IsZero() && !after.Until.IsZero():
		k.record(now, BackoffStarted{Backoff: Backoff{"subnet", k.subnets.best(k.settings.Subnets), after.Until, after.Cause}})
	case !before.Until.IsZero() && after.Until.IsZero():
		k.record(now, BackoffEnded{Backoff: Backoff{"subnet", k.subnets.best(k.settings.Subnets), before.Until, before.Cause}})
	}
	k.record(now, SubnetsListed{Subnets: k.settings.Subnets.Candidates(k.subnets.all)})
	k.noteFullSubnet(now)
}

// noteFullSubnet records a subnet without free addresses if the pool has none for the next
// ADD. EC2 is not asked for addresses that the list does not show, so no failed call reports it.
func (k *Keeper) noteFullSubnet(now time.Time) {
	if k.subnets.low.Until.IsZero() || !k.settings.Provisioning {
		return
	}
	if code, text, blocked := k.Blocked(now, false); blocked && code == cause.SubnetExhausted {
		k.record(now, SubnetFull{Subnet: k.subnets.best(k.settings.Subnets), Detail: text})
	}
}

// addressesIn counts the IPv4 addresses in CIDRs, as EC2 does.
func addressesIn(cidrs []netip.Prefix) (n int) {
	for _, p := range cidrs {
		if p.Addr().Is6() {
			continue
		}
		n += 1 << (p.Addr().BitLen() - p.Bits())
	}
	return n
}
