package warmpool

// targets are the policy's targets for one pool, one of three kinds.
type targets struct {
	ips      bool // spare and minimum count addresses
	prefixes bool // spare counts free /28s
	// neither: spare counts ENIs' worth of addresses, and whole ENIs come and go

	spare   int // WARM_IP_TARGET, WARM_PREFIX_TARGET or WARM_ENI_TARGET
	minimum int // MINIMUM_IP_TARGET
}

// targetsOf applies the precedence: IP targets, then (in prefix mode) the prefix target, then
// the ENI target. Cards beyond the first always want one address.
func targetsOf(po *pool, p *Policy) targets {
	switch {
	case po.card > 0:
		return targets{ips: true, spare: 1, minimum: 1}
	case p.WarmIP > 0 || p.MinIP > 0:
		return targets{ips: true, spare: max(0, p.WarmIP), minimum: max(0, p.MinIP)}
	case po.prefixes:
		return targets{prefixes: true, spare: max(0, p.WarmPrefix)}
	default:
		return targets{spare: max(0, p.WarmENI)}
	}
}

// spareAddresses is how many addresses should be free. It is never 0: whatever the target, a
// pool without a free address is too low, and nothing is released that would make it so. That
// keeps a target of 0 from oscillating, and MINIMUM_IP_TARGET alone from being a cap.
func (t targets) spareAddresses(perENI int) int {
	switch {
	case t.ips:
		return max(1, t.spare)
	case t.prefixes:
		return max(1, t.spare*prefixSize)
	default:
		return max(1, t.spare*perENI)
	}
}

// reservePart defines the reserve of a pool that grows by ENIs: max-pods divided by it.
const reservePart = 20

// reserve is how many usable addresses beyond max-pods a pool keeps for the first pods that
// are replaced on a full node, if the target asks for spare addresses. Only a pool that grows
// by ENIs has a reserve: attaching the next ENI takes EC2 seconds, an assignment a fraction of
// a second.
func (t targets) reserve(maxPods int) int {
	if t.ips || t.prefixes || t.spare == 0 {
		return 0
	}
	return (maxPods + reservePart - 1) / reservePart
}

// shortfall is the number of addresses that the pool lacks, counting addresses in flight as
// present and every waiting or expected ADD as served. Addresses in cooldown are neither free
// nor gone.
func shortfall(po *pool, t targets, perENI int) (int, Reason) {
	toServe := po.unserved()
	toSpare := t.spareAddresses(perENI) + toServe
	toMinimum := t.minimum - po.total - po.pending
	short := max(0, toSpare, toMinimum)
	switch {
	case toServe > 0:
		return short, po.served()
	case po.card > 0:
		return short, CardPool
	case toMinimum > toSpare:
		return short, MinimumIP
	case t.spare == 0:
		return short, PoolEmpty
	case t.ips:
		return short, WarmIP
	case t.prefixes:
		return short, WarmPrefix
	default:
		return short, WarmENI
	}
}

// excess is the number of CIDRs that can go without making the pool short. Only addresses that
// are free now count, so that what is released is not requested again while others are in
// cooldown.
func excess(po *pool, t targets, perENI int) int {
	over := po.free() - po.expected - t.spareAddresses(perENI)
	if t.ips {
		over = min(over, po.total-t.minimum)
	}
	if over <= 0 {
		return 0
	}
	n := over / po.unit()
	if t.prefixes {
		n = min(n, max(0, po.freePrefixes-t.spare))
	}
	return n
}
