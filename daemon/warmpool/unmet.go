package warmpool

import "time"

// UnmetTarget is a target that the pool of a network card cannot reach, however long one
// waits. Plan has no action for it, and it is not a fault: pods may have all the addresses they
// need.
type UnmetTarget struct {
	Target   string // the setting: WARM_ENI_TARGET, WARM_IP_TARGET, MINIMUM_IP_TARGET, WARM_PREFIX_TARGET
	Wanted   int    // in the target's unit: ENIs' worth of free addresses, free addresses, addresses, prefixes' worth of free addresses
	Possible int    // the most that is possible beside the current pods; 0 for an ignored target
	Limit    Limit
}

// Limit is what keeps a target from being reached. Its text is stable.
type Limit string

// The limits, the narrowest first if several apply.
const (
	LimitCordoned   Limit = "cordoned"
	LimitMaxPods    Limit = "max-pods"
	LimitNoSubnet   Limit = "no-usable-subnet"
	LimitENIs       Limit = "eni-limit"
	LimitAddresses  Limit = "address-limit"
	LimitStated     Limit = "stated-limit" // EC2 refused what the instance type is known to take
	LimitMode       Limit = "mode"         // the target belongs to the other of secondary-IP and prefix mode
	LimitOverridden Limit = "overridden"   // another target takes precedence
	LimitIPv6       Limit = "ipv6"         // an IPv6 cluster ignores all targets
)

// Title is the one-line meaning of a limit, "" for an unknown one.
func (l Limit) Title() string {
	switch l {
	case LimitCordoned:
		return "the pool of a cordoned node grows only for waiting pods"
	case LimitMaxPods:
		return "the pool does not grow beyond max-pods"
	case LimitNoSubnet:
		return "no subnet can be used for new network interfaces"
	case LimitENIs:
		return "fewer network interfaces serve pods than the instance type supports: MAX_ENI, a slot reserved for a trunk, or excluded interfaces"
	case LimitAddresses:
		return "the instance type's network interfaces hold no more addresses"
	case LimitStated:
		return "EC2 refused more network interfaces or addresses, although the instance type takes them"
	case LimitMode:
		return "the target applies to the other mode (secondary IP or prefix) and is ignored"
	case LimitOverridden:
		return "WARM_IP_TARGET or MINIMUM_IP_TARGET is set and overrides this target"
	case LimitIPv6:
		return "an IPv6 pool holds one /80 per network interface and ignores targets"
	}
	return ""
}

// Ignored reports whether the target is ignored, rather than out of reach.
func (l Limit) Ignored() bool {
	return l == LimitMode || l == LimitOverridden || l == LimitIPv6
}

// Unmet lists the targets of a network card that its pool cannot reach with its current pods,
// in the order of precedence. Back-offs, operations in flight, addresses in cooldown and short
// subnets do not count: they are temporary. Cards beyond the first have no operator targets.
func Unmet(s Snapshot, p Policy, now time.Time, card int) []UnmetTarget {
	if s.Terminating || card != 0 || cards(&s, &p) == 0 || at(s.Unmanaged, 0) {
		return nil
	}
	pl, po := newPlanner(&s, &p, now), newPool(&s, &p, now, 0)
	most, limit := pl.most(po)
	free := max(0, most-po.assigned-po.waiting)
	var out []UnmetTarget
	check := func(target string, wanted, possible int) {
		if wanted > possible {
			out = append(out, UnmetTarget{Target: target, Wanted: wanted, Possible: possible, Limit: limit})
		}
	}
	ignored := func(target string, wanted int, why Limit) {
		if wanted > 0 {
			out = append(out, UnmetTarget{Target: target, Wanted: wanted, Limit: why})
		}
	}
	if po.ipv6 {
		ignored("WARM_IP_TARGET", p.WarmIP, LimitIPv6)
		ignored("MINIMUM_IP_TARGET", p.MinIP, LimitIPv6)
		ignored("WARM_PREFIX_TARGET", p.WarmPrefix, LimitIPv6)
		ignored("WARM_ENI_TARGET", p.WarmENI, LimitIPv6)
		return out
	}
	t := targetsOf(po, pl.p)
	if t.ips {
		check("WARM_IP_TARGET", p.WarmIP, free)
		check("MINIMUM_IP_TARGET", p.MinIP, most)
	}
	switch {
	case !po.prefixes:
		ignored("WARM_PREFIX_TARGET", p.WarmPrefix, LimitMode)
	case t.ips:
		ignored("WARM_PREFIX_TARGET", p.WarmPrefix, LimitOverridden)
	default:
		check("WARM_PREFIX_TARGET", p.WarmPrefix, free/prefixSize)
	}
	switch {
	case t.ips:
		ignored("WARM_ENI_TARGET", p.WarmENI, LimitOverridden)
	case po.prefixes:
		ignored("WARM_ENI_TARGET", p.WarmENI, LimitMode)
	default:
		check("WARM_ENI_TARGET", p.WarmENI, free/max(1, pl.perENI))
	}
	return out
}

// most is how many addresses the pool can reach, and what limits it there.
func (pl *planner) most(po *pool) (int, Limit) {
	if cordoned(pl.s, pl.p) {
		return po.total + po.pending, LimitCordoned
	}
	most, serving, slots := po.total, 0, pl.vacant(po, at(pl.s.Limits.ENIsByCard, po.card))
	for i := range po.enis {
		e := &po.enis[i]
		switch {
		case e.Held:
			slots++ // it is being detached
		case e.grows():
			serving++
			// CIDRs that are or will be released because pods cannot use them make room.
			most += max(0, pl.perENI-(e.cidrs-e.held-e.misfits)) * po.unit()
		}
	}
	arriving := 0
	for i := range pl.s.Pending {
		if op := &pl.s.Pending[i]; op.Kind == PendingAttach && op.Card == po.card {
			arriving++
		}
	}
	coming, limit := max(0, slots)+arriving, LimitAddresses
	if pl.s.NoUsableSubnet && slots > 0 {
		coming, limit = arriving, LimitNoSubnet
	} else if serving+coming < at(pl.s.Limits.ENIsByCard, po.card) {
		limit = LimitENIs
	} else if pl.bounds(po, pl.s.Stated.Card(po.card)) || pl.s.Stated.Slots.There() {
		limit = LimitStated
	}
	most += coming * pl.perENI * po.unit()
	if pl.p.MaxPods > 0 {
		if bound := pl.untilMaxPods(po, max(0, slots)+arriving); bound < most {
			most, limit = bound, LimitMaxPods
		}
	}
	return most, limit
}

// untilMaxPods is how many addresses the pool has when max-pods ends its growth, if coming
// ENIs can still be attached.
func (pl *planner) untilMaxPods(po *pool, coming int) int {
	t, total := targetsOf(po, pl.p), po.total
	if t.ips || t.prefixes {
		return total + po.units(pl.p.MaxPods-total)*po.unit()
	}
	for _, e := range po.order(byFullest) {
		if e.grows() && total < pl.p.MaxPods {
			total += max(0, pl.perENI-(e.cidrs-e.held-e.misfits))
		}
	}
	for ; coming > 0 && total < pl.p.MaxPods; coming-- {
		total += pl.perENI
	}
	return max(total, pl.p.MaxPods+t.reserve(pl.p.MaxPods))
}
