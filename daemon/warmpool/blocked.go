package warmpool

import (
	"fmt"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// Blocked returns why a waiting ADD of a network card gets no address now and none is on its
// way: the cause, and one sentence with the figures. It returns false while an address is
// free, or the pool can grow or is growing.
func Blocked(s Snapshot, p Policy, now time.Time, card int) (cause.Code, string, bool) {
	switch {
	case s.Terminating:
		return cause.DaemonTerminating, cause.DaemonTerminating.Title(), true
	case card > 0 && !p.MultiNIC:
		return cause.MultiNICDisabled, cause.MultiNICDisabled.Title(), true
	case card < 0 || card >= cards(&s, &p):
		return cause.PoolFull, fmt.Sprintf("the instance has no network card %d", card), true
	case at(s.Unmanaged, card):
		return cause.PoolFull, fmt.Sprintf("network card %d has an EFA-only interface and no pool", card), true
	}
	pl := newPlanner(&s, &p, now)
	po := newPool(&s, &p, now, card)
	if po.free() > 0 || po.pending > 0 {
		return "", "", false
	}
	po.waiting = max(1, po.waiting)
	pl.clean(po)
	g := pl.grow(po)
	if g.planned > 0 || g.deferred {
		return "", "", false
	}
	code, text := pl.explain(po, g.obstacles)
	return code, text, true
}

// AtENILimit reports whether the pool of a network card is short and only the ENI limit
// prevents attaching another one.
func AtENILimit(s Snapshot, p Policy, now time.Time, card int) bool {
	if s.Terminating || card < 0 || card >= cards(&s, &p) || at(s.Unmanaged, card) {
		return false
	}
	pl := newPlanner(&s, &p, now)
	po := newPool(&s, &p, now, card)
	pl.clean(po)
	g := pl.grow(po)
	return slices.ContainsFunc(g.obstacles, func(o obstacle) bool { return o.kind == atMaxENIs })
}

// precedence orders the obstacles for users: those that can be fixed come before limits that
// are as they should be.
var precedence = []obstacleKind{fragmented, exhausted, noSubnet, eniLate, attachLate}

func (pl *planner) explain(po *pool, obstacles []obstacle) (cause.Code, string) {
	for _, kind := range precedence {
		i := slices.IndexFunc(obstacles, func(o obstacle) bool { return o.kind == kind })
		if i >= 0 {
			return pl.describe(obstacles[i])
		}
	}
	held := pl.limits(po, obstacles)
	if po.cooling > 0 {
		return cause.AddressesCooling, fmt.Sprintf("%s; %d of its %d addresses are cooling, the first is free in %s",
			held, po.cooling, po.total, seconds(po.coolEnd.Sub(pl.now)))
	}
	if slices.ContainsFunc(obstacles, func(o obstacle) bool { return o.kind == statedENIs }) {
		return cause.ENIAttachLimit, held
	}
	return cause.PoolFull, held
}

// describe describes an obstacle that is not a limit.
func (pl *planner) describe(o obstacle) (cause.Code, string) {
	until := ""
	if !o.until.IsZero() {
		until = fmt.Sprintf(", next attempt in %s", seconds(o.until.Sub(pl.now)))
	}
	switch o.kind {
	case fragmented:
		block := "/28"
		if pl.p.IPv6 {
			block = "/80"
		}
		return cause.SubnetFragmented, fmt.Sprintf("%s has no free aligned %s block%s", o.subject, block, until)
	case exhausted:
		return cause.SubnetExhausted, fmt.Sprintf("%s has no free addresses%s", o.subject, until)
	case noSubnet:
		return cause.NoUsableSubnet, cause.NoUsableSubnet.Title()
	case eniLate:
		if code := pl.s.ENIBackoffCause[ipam.ENIID(o.subject)]; code != "" {
			return code, fmt.Sprintf("the last request for %s failed: %s%s", o.subject, code.Title(), until)
		}
		return cause.EC2Error, fmt.Sprintf("the last request for %s failed%s", o.subject, until)
	}
	if code := pl.s.AttachBackoffCause; code != "" {
		return code, code.Title() + until
	}
	return cause.EC2Error, "the last network interface could not be created or attached" + until
}

// limits describes the limit that a full pool has reached.
func (pl *planner) limits(po *pool, obstacles []obstacle) string {
	if slices.ContainsFunc(obstacles, func(o obstacle) bool { return o.kind == atMaxPods }) {
		return fmt.Sprintf("the pool holds %d addresses, max-pods is %d", po.total, pl.p.MaxPods)
	}
	most := at(pl.s.Limits.ENIsByCard, po.card)
	text := fmt.Sprintf("%d of %d network interfaces are attached and hold all %d addresses they can", po.attached, most, po.total)
	if po.ipv6 {
		text = fmt.Sprintf("%d of %d network interfaces are attached and none holds a /80 for pods", po.attached, most)
	}
	idle := 0
	for i := range po.enis {
		if e := &po.enis[i]; !e.serves && !e.Held && !e.Quarantined() {
			idle++
		}
	}
	if idle > 0 {
		text += fmt.Sprintf(" (%d of them excluded from serving pods)", idle)
	}
	if po.misplaced > 0 {
		text += fmt.Sprintf(" (%s in use by pods moved between interfaces in EC2)", count(po.misplaced, "address range"))
	}
	if pl.p.MaxENI > 0 && pl.p.MaxENI < most {
		text += fmt.Sprintf(" (MAX_ENI is %d)", pl.p.MaxENI)
	}
	if s := pl.s.Stated.Card(po.card); s.There() {
		text += fmt.Sprintf(" (EC2 refused to attach more, although the instance type takes %d%s)", s.OfType, pl.again(s))
	}
	if s := pl.s.Stated.Slots; s.There() {
		text += fmt.Sprintf(" (EC2 refused more than %d on one, although the instance type takes %d%s)", s.Most, s.OfType, pl.again(s))
	}
	if pl.reserved(po) {
		text += " (one slot is reserved for a trunk)"
	}
	return text
}

// again says when a stated limit is tried again, if that is not now.
func (pl *planner) again(s Stated) string {
	if s.due(pl.now) {
		return ""
	}
	return ", next attempt in " + seconds(s.Retry.Sub(pl.now)).String()
}

// seconds rounds a time to wait, which is never none.
func seconds(d time.Duration) time.Duration { return max(d.Round(time.Second), time.Second) }
