package whatif

import (
	"net/netip"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// UpstreamPass is the period of the loop of upstream's daemon, v1.23.1.
const UpstreamPass = 5 * time.Second

const (
	upstreamShrink = 30 * time.Second
	upstreamENIAge = time.Minute
)

// PlanUpstream is one pass of upstream's daemon: addresses in cooldown count as available,
// the pool grows by one step per pass, and while a request is in flight the daemon does
// nothing else.
func PlanUpstream(s warmpool.Snapshot, p warmpool.Policy, now time.Time) []warmpool.Action {
	if len(s.Pending) > 0 || s.Unschedulable && !p.ManageUnschedulable {
		return nil
	}
	u := readUpstream(&s, &p, now)
	actions := u.step()
	next := u.wait
	if pass := now.Truncate(UpstreamPass); len(actions) > 0 && !pass.Equal(now) {
		actions, next = nil, pass.Add(UpstreamPass)
	}
	if s.Waiting[0] > 0 {
		if ends := u.cooldownEnds(); next.IsZero() || ends.After(now) && ends.Before(next) {
			next = ends // kubelet repeats the ADD
		}
	}
	if next.After(now) {
		actions = append(actions, warmpool.Wait{Until: next})
	}
	return actions
}

// upstream is the state that a pass works on.
type upstream struct {
	s   *warmpool.Snapshot
	p   *warmpool.Policy
	now time.Time

	slots, perSlot int // slots of an interface, and addresses of a slot
	limit          int // interfaces that may be attached
	attached       int
	serving        []*ipam.ENIState
	cidrs          int // on serving interfaces
	total, free    int // addresses; those in cooldown are free
	freePrefixes   int
	wait           time.Time // when something may become possible
}

func readUpstream(s *warmpool.Snapshot, p *warmpool.Policy, now time.Time) *upstream {
	u := &upstream{s: s, p: p, now: now, slots: max(0, s.Limits.IPv4PerENI-1), perSlot: 1, limit: s.Limits.ENIsByCard[0], attached: len(s.Book.ENIs)}
	if len(s.OtherENIs) > 0 {
		u.attached += s.OtherENIs[0]
	}
	if p.PrefixDelegation {
		u.perSlot = limits.PrefixSize
	}
	if p.MaxENI >= 1 {
		u.limit = min(u.limit, p.MaxENI)
	}
	for i := range s.Book.ENIs {
		e := &s.Book.ENIs[i]
		if e.Trunk || e.Held || e.Excluded || p.CustomNetworking && e.Primary {
			continue
		}
		u.serving = append(u.serving, e)
		for j := range e.CIDRs {
			c := &e.CIDRs[j]
			if c.IsPrefix() != p.PrefixDelegation {
				continue
			}
			u.cidrs++
			u.total += u.perSlot
			u.free += u.perSlot - c.Assigned
			if c.Assigned == 0 {
				u.freePrefixes++
			}
		}
	}
	return u
}

func (u *upstream) targets() bool { return u.p.WarmIP > 0 || u.p.MinIP > 0 }

// short is the number of CIDRs missing for WARM_IP_TARGET and MINIMUM_IP_TARGET, and over the
// number of surplus ones.
func (u *upstream) short() int {
	return u.units(max(u.p.WarmIP-u.free, u.p.MinIP-u.total, 0))
}

func (u *upstream) over() int {
	assigned := u.total - u.free
	switch {
	case u.p.PrefixDelegation && u.targets():
		return max(0, min(u.freePrefixes, u.cidrs-u.units(assigned+u.p.WarmIP), u.cidrs-u.units(u.p.MinIP)))
	case u.p.PrefixDelegation:
		return max(0, u.freePrefixes-u.p.WarmPrefix)
	case u.targets():
		return max(0, min(u.free-u.p.WarmIP, u.total-u.p.MinIP))
	}
	return 0
}

func (u *upstream) units(addresses int) int { return (addresses + u.perSlot - 1) / u.perSlot }

func (u *upstream) low() bool {
	switch {
	case u.p.MaxPods > 0 && u.total >= u.p.MaxPods:
		return false
	case u.targets():
		return u.short() > 0
	case u.p.PrefixDelegation:
		return u.free < u.p.WarmPrefix*limits.PrefixSize || u.p.WarmPrefix == 0 && u.free == 0
	}
	return u.free < u.p.WarmENI*u.slots || u.p.WarmENI == 0 && u.free == 0
}

// want is the number of CIDRs that a step of growth requests.
func (u *upstream) want() int {
	switch {
	case u.targets():
		return u.short()
	case u.p.PrefixDelegation:
		return max(1, u.p.WarmPrefix-u.freePrefixes)
	}
	return u.slots
}

// step returns the actions of a pass.
func (u *upstream) step() []warmpool.Action {
	if u.low() {
		for _, n := range u.s.Subnets {
			if n.BackoffUntil.After(u.now) {
				u.wait = n.BackoffUntil
				return nil
			}
		}
		return u.grow()
	}
	if a := u.shrink(); len(a) > 0 {
		return a
	}
	return u.freeOne()
}

func (u *upstream) grow() []warmpool.Action {
	for _, e := range u.serving {
		n := min(u.slots-len(e.CIDRs), u.want())
		if n < 1 {
			continue
		}
		if u.p.PrefixDelegation {
			return []warmpool.Action{warmpool.AssignPrefixes{ENI: e.ID, Count: n, Reason: warmpool.WarmPrefix}}
		}
		return []warmpool.Action{warmpool.AssignAddresses{ENI: e.ID, Count: n, Reason: warmpool.WarmIP}}
	}
	if u.attached >= u.limit {
		return nil
	}
	a := warmpool.AttachENI{Device: u.freeDevice(), Reason: warmpool.WarmENI}
	if n := min(u.slots, u.want()); u.p.PrefixDelegation {
		a.Prefixes = n
	} else {
		a.IPs = n
	}
	return []warmpool.Action{a}
}

func (u *upstream) freeDevice() int {
	used := map[int]bool{}
	for i := range u.s.Book.ENIs {
		used[u.s.Book.ENIs[i].Device] = true
	}
	for d := 0; ; d++ {
		if !used[d] {
			return d
		}
	}
}

// cooling is the number of addresses of a CIDR in cooldown.
func (u *upstream) cooling(c *ipam.CIDRState) int { return c.Cooling(u.now, u.p.Cooldown) }

// cooldownEnds is when the first address in cooldown can be assigned; zero if there is none.
func (u *upstream) cooldownEnds() (first time.Time) {
	for _, e := range u.serving {
		for j := range e.CIDRs {
			for _, r := range e.CIDRs[j].Records {
				if r.Cooling(u.now, u.p.Cooldown) && (first.IsZero() || r.UnassignedAt.Before(first)) {
					first = r.UnassignedAt
				}
			}
		}
	}
	if !first.IsZero() {
		first = first.Add(u.p.Cooldown + 1) // the last instant of the cooldown counts
	}
	return first
}

// shrink releases CIDRs without pods, even if their addresses are in cooldown.
func (u *upstream) shrink() (out []warmpool.Action) {
	over := u.over()
	if over <= 0 {
		return nil
	}
	if next := u.s.LastScaleDown.Add(upstreamShrink); !u.s.LastScaleDown.IsZero() && next.After(u.now) {
		u.wait = next
		return nil
	}
	for _, e := range u.serving {
		var freed []netip.Prefix
		for j := range e.CIDRs {
			c := &e.CIDRs[j]
			if len(freed) == over || c.Assigned > 0 || c.Held || c.IsPrefix() != u.p.PrefixDelegation {
				continue
			}
			freed = append(freed, c.Prefix)
		}
		if over -= len(freed); len(freed) == 0 {
			continue
		}
		if u.p.PrefixDelegation {
			out = append(out, warmpool.UnassignPrefixes{ENI: e.ID, CIDRs: freed, Reason: warmpool.SurplusPrefixes})
		} else {
			out = append(out, warmpool.UnassignAddresses{ENI: e.ID, CIDRs: freed, Reason: warmpool.SurplusIPs})
		}
	}
	return out
}

// freeOne detaches one interface without pods if there may be one too many.
func (u *upstream) freeOne() []warmpool.Action {
	spare := u.p.WarmENI
	if u.p.PrefixDelegation {
		spare = u.p.WarmPrefix
	}
	if !u.targets() && !u.p.PrefixDelegation && u.free < (spare+1)*u.slots {
		return nil
	}
	for _, e := range u.serving {
		n, pods, cooling := len(e.CIDRs)*u.perSlot, 0, 0
		for j := range e.CIDRs {
			pods += e.CIDRs[j].Assigned
			cooling += u.cooling(&e.CIDRs[j])
		}
		if e.Primary || pods > 0 || !u.unneeded(n, len(e.CIDRs)) {
			continue
		}
		if age := u.now.Sub(e.AttachedAt); age < upstreamENIAge || cooling > 0 {
			u.wait = u.now.Add(max(UpstreamPass, upstreamENIAge-age))
			continue
		}
		return []warmpool.Action{warmpool.DetachENI{ENI: e.ID, Reason: warmpool.SurplusENI}}
	}
	return nil
}

// unneeded reports whether the targets are met without the addresses of an interface.
func (u *upstream) unneeded(addresses, cidrs int) bool {
	if u.p.PrefixDelegation && u.freePrefixes-cidrs < u.p.WarmPrefix {
		return false
	}
	return u.free-addresses >= u.units(u.p.WarmIP)*u.perSlot && u.total-addresses >= u.units(u.p.MinIP)*u.perSlot
}
