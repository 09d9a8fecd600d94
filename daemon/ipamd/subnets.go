package ipamd

import (
	"log/slog"
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// subnetCache is the list of subnets as EC2 last described it.
type subnetCache struct {
	all        []vpcapi.Subnet
	read       time.Time // when EC2 answered last; zero: never
	expired    bool      // known to be out of date
	refreshing bool
	failed     clock // of reading the list
	low        clock // while no usable subnet has addresses: when to look again
}

// subnetMaxAge is how old the list may be when an ENI is created from it.
const subnetMaxAge = time.Minute

// outdated reports that the free counts may have changed since they were read.
func (c *subnetCache) outdated(now time.Time) bool {
	return c.expired || now.Sub(c.read) > subnetMaxAge
}

// doubtful reports that a count that is too low should not be believed any more.
func (c *subnetCache) doubtful(now time.Time) bool {
	if c.low.until.IsZero() {
		return c.outdated(now)
	}
	return c.expired || !c.low.until.After(now)
}

// stale reports that the list should be read again before it is used.
func (c *subnetCache) stale(now time.Time) bool {
	return c.doubtful(now) && !c.failed.until.After(now)
}

func (c *subnetCache) known() bool { return !c.read.IsZero() }

func (c *subnetCache) expire() { c.expired = true }

func (c *subnetCache) fill(subnets []vpcapi.Subnet, p resync.SubnetPolicy, now time.Time) {
	c.all, c.read, c.expired = subnets, now, false
	candidates := p.Candidates(c.views())
	if len(candidates) > 0 && candidates[0].AvailableIPs < fewAddresses {
		c.low.fail(now, now, cause.SubnetExhausted, exhaustedFirst, exhaustedMost)
		return
	}
	c.low.succeed(now)
}

// take lowers the known free count by what an operation is about to use.
func (c *subnetCache) take(id string, addresses int) {
	for i := range c.all {
		if c.all[i].ID == id {
			c.all[i].AvailableIPs = max(0, c.all[i].AvailableIPs-addresses)
		}
	}
}

func (c *subnetCache) cidr(id string) netip.Prefix {
	for _, s := range c.all {
		if s.ID == id {
			return s.CIDR
		}
	}
	return netip.Prefix{}
}

func (c *subnetCache) views() []resync.Subnet {
	out := make([]resync.Subnet, len(c.all))
	for i, s := range c.all {
		out[i] = resync.Subnet{ID: s.ID, AvailableIPs: s.AvailableIPs, Tags: s.Tags}
	}
	return out
}

// fewAddresses is less than an ENI with one prefix takes.
const fewAddresses = 17

// forPlanner lists the usable subnets. A count that is too low for anything and
// doubtful is passed on as not known: else a subnet that was full once would be
// taken for full for ever, for nothing but a wish for an ENI makes it read again.
func (c *subnetCache) forPlanner(p resync.SubnetPolicy, b backoffs, now time.Time) []warmpool.Subnet {
	candidates := p.Candidates(c.views())
	out := make([]warmpool.Subnet, len(candidates))
	for i, s := range candidates {
		if s.AvailableIPs < fewAddresses && c.doubtful(now) {
			s.AvailableIPs = -1
		}
		out[i] = warmpool.Subnet{
			ID: s.ID, AvailableIPs: s.AvailableIPs,
			BackoffUntil: until(b.subnet, s.ID), PrefixBackoff: until(b.subnetPrefixes, s.ID),
		}
	}
	return out
}

func (o *owner) refreshSubnets(now time.Time) {
	if o.subnets.refreshing {
		return
	}
	o.subnets.refreshing = true
	o.exec.describeSubnets()
}

// subnetsRead reports DescribeSubnets.
type subnetsRead struct {
	subnets []vpcapi.Subnet
	err     error
}

func (m subnetsRead) handle(o *owner, now time.Time) {
	o.subnets.refreshing = false
	if m.err != nil {
		// Fail open: the list as last known, or the node's own subnet, serves on
		// (the original stops here; spec/ipamd.md §13.1 row 13).
		o.subnets.failed.fail(now, now, vpcapi.Cause(m.err), throttleFirst, exhaustedMost)
		o.history.failed(now, "DescribeSubnets", vpcapi.Cause(m.err), m.err)
		o.log.Warn("subnets not described", slog.String(logline.KeyCause, string(vpcapi.Cause(m.err))), slog.Any(logline.KeyError, m.err))
		return
	}
	o.subnets.failed.succeed(now)
	o.subnets.fill(m.subnets, o.node.subnetPolicy, now)
}
