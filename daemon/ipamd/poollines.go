package ipamd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/warmpool"
)

// poolLines logs the lines about the state of the pool that belong to no single event.
// Upstream logs most of them in every loop, every five seconds; here each is logged when its
// content has changed. Only the owner's goroutine uses it.
type poolLines struct {
	log      *slog.Logger
	debug    bool // debug lines are written; if not, they need not be formatted
	policy   warmpool.Policy
	cooldown time.Duration

	grown bool      // set by poolChanged: log at once
	used  bool      // set by poolUsed: log eventually
	next  time.Time // earliest time to log after poolUsed

	cooling []rest // oldest first

	stats   []ipam.Totals // as last logged, per card
	pools   []ipam.Totals
	limited []bool                // per card: no further ENI fits, although one is wanted
	stays   map[ipam.ENIID]string // why an ENI cannot be deleted, as last logged
}

// rest is an address in cooldown.
type rest struct {
	address netip.Addr
	until   time.Time
}

// poolLinesEvery is the minimum time between two lines while addresses are only taken and
// returned.
const poolLinesEvery = 30 * time.Second

func newPoolLines(ctx context.Context, log *slog.Logger, policy warmpool.Policy) poolLines {
	return poolLines{log: log, debug: log.Enabled(ctx, slog.LevelDebug), policy: policy, cooldown: policy.Cooldown, stays: make(map[ipam.ENIID]string)}
}

// poolChange is the effect of an event on these lines.
type poolChange uint8

const (
	poolUsed    poolChange = iota + 1 // an address was taken or returned
	poolChanged                       // the pool's ENIs or CIDRs changed
)

// note records the effect of an event. It is the only cost for an ADD or a DEL.
func (p *poolLines) note(change poolChange, cools netip.Addr, at time.Time) {
	p.used = p.used || change == poolUsed
	p.grown = p.grown || change == poolChanged
	if p.cooldown > 0 && cools.IsValid() {
		p.cooling = append(p.cooling, rest{cools, at.Add(p.cooldown)})
	}
}

// stepped logs what the keeper's last step changed.
func (p *poolLines) stepped(k *keeper.Keeper, now time.Time) {
	p.logCooled(now)
	if !p.grown && (!p.used || now.Before(p.next)) {
		return
	}
	p.grown, p.used, p.next = false, false, now.Add(poolLinesEvery)
	snapshot, policy := k.Pool(now)
	for card := range snapshot.Limits.ENIsByCard {
		if card > 0 && !policy.MultiNIC {
			break
		}
		p.logLimit(snapshot, policy, card, now)
		if p.debug {
			p.logStats(snapshot, policy, card, now)
		}
	}
	if p.debug {
		p.logStays(snapshot, policy, now)
	}
}

// logCooled logs addresses whose cooldown is over.
func (p *poolLines) logCooled(now time.Time) {
	n := 0
	for n < len(p.cooling) && !p.cooling[n].until.After(now) {
		if p.debug {
			ip := p.cooling[n].address.String()
			p.log.Debug(fmt.Sprintf(textCooled, ip), slog.String(logline.KeyIP, ip)) //nolint:sloglint // upstream's line
		}
		n++
	}
	if p.cooling = p.cooling[n:]; len(p.cooling) == 0 {
		p.cooling = nil // otherwise its array would grow forever
	}
}

// logLimit logs once that a pool has reached its ENI limit, until it leaves the limit.
func (p *poolLines) logLimit(s warmpool.Snapshot, policy warmpool.Policy, card int, now time.Time) {
	for len(p.limited) <= card {
		p.limited = append(p.limited, false)
	}
	limited := warmpool.AtENILimit(s, policy, now, card)
	if limited && !p.limited[card] {
		p.log.Info(textENILimit, slog.Int(logline.KeyNetworkCard, card), slog.Int(logline.KeyCount, s.Limits.ENIsByCard[card]))
	}
	p.limited[card] = limited
}

// logStats logs the contents of a card's pool.
func (p *poolLines) logStats(s warmpool.Snapshot, policy warmpool.Policy, card int, now time.Time) {
	for len(p.stats) <= card {
		p.stats, p.pools = append(p.stats, ipam.Totals{Total: -1}), append(p.pools, ipam.Totals{Total: -1})
	}
	kind, text, perENI := ipam.SecondaryIPs, textPoolStats, s.Limits.IPv4PerENI-1
	if policy.PrefixDelegation {
		kind, text, perENI = ipam.Prefixes, textPrefixStats, limits.PrefixSize*perENI
	}
	t := s.Book.Totals(card, kind, now, p.cooldown)
	about := slog.Int(logline.KeyNetworkCard, card)
	if held := p.pools[card]; t.Total != held.Total || t.Prefixes != held.Prefixes {
		//nolint:sloglint // upstream's line
		p.log.Debug(fmt.Sprintf(text, card, t.Total, t.Prefixes, t.Assigned, t.Cooling, perENI), about, slog.Int(logline.KeyFree, t.Free))
		p.pools[card] = t
	}
	if t != p.stats[card] {
		//nolint:sloglint // upstream's line
		p.log.Debug(fmt.Sprintf(textStats, card, t.Total, t.Assigned, t.Cooling), about, slog.Int(logline.KeyFree, t.Free))
		p.stats[card] = t
	}
}

// logStays logs why ENIs cannot be deleted, if the reason changed.
func (p *poolLines) logStays(s warmpool.Snapshot, policy warmpool.Policy, now time.Time) {
	seen := make(map[ipam.ENIID]string, len(s.Book.ENIs))
	for i := range s.Book.ENIs {
		e := &s.Book.ENIs[i]
		why := stays(s.Book.ENIs, i, policy, s.Limits.IPv4PerENI-1, now)
		if seen[e.ID] = why; why != "" && why != p.stays[e.ID] {
			//nolint:sloglint // upstream's line
			p.log.Debug(fmt.Sprintf(textNotDeletable, e.ID, why), slog.String(logline.KeyENI, string(e.ID)), slog.Int(logline.KeyNetworkCard, e.Card))
		}
	}
	p.stays = seen
}

// stays returns why an ENI cannot be deleted, checked in upstream's order; "" if it can.
func stays(enis []ipam.ENIState, i int, p warmpool.Policy, perENI int, now time.Time) string {
	e := &enis[i]
	assigned, cooling := 0, 0
	for j := range e.CIDRs {
		assigned += e.CIDRs[j].Assigned
		cooling += e.CIDRs[j].Cooling(now, p.Cooldown)
	}
	switch {
	case e.Held:
		return "" // it is being deleted
	case e.Primary:
		return "it is primary"
	case now.Sub(e.AttachedAt) < p.ENIMinAge:
		return "it is too young"
	case cooling > 0:
		return "it has IPs in cooling"
	case assigned > 0:
		return "it has pods assigned"
	case e.Trunk:
		return "it is a trunk ENI"
	case e.EFA:
		return "it is an EFA ENI"
	}
	return required(enis, i, p, perENI)
}

// required names the target that the card's other ENIs alone would not meet.
func required(enis []ipam.ENIState, i int, p warmpool.Policy, perENI int) string {
	var total, free, idle int
	for j := range enis {
		e := &enis[j]
		if j == i || e.Card != enis[i].Card || e.Held || e.Excluded || e.Quarantined() {
			continue
		}
		for c := range e.CIDRs {
			cidr := &e.CIDRs[c]
			if cidr.Held || cidr.Quarantined() || cidr.IsPrefix() != p.PrefixDelegation {
				continue
			}
			total += cidr.Size()
			free += cidr.Size() - cidr.Assigned
			if cidr.Assigned == 0 {
				idle++
			}
		}
	}
	target := func(n int) int {
		if p.PrefixDelegation {
			return (n + 15) / 16 * 16
		}
		return n
	}
	byIPs := p.WarmIP > 0 || p.MinIP > 0
	switch {
	case p.WarmIP > 0 && free < target(p.WarmIP):
		return fmt.Sprintf("it is required for WARM_IP_TARGET: %d", p.WarmIP)
	case p.MinIP > 0 && total < target(p.MinIP):
		return fmt.Sprintf("it is required for MINIMUM_IP_TARGET: %d", p.MinIP)
	case p.PrefixDelegation && !byIPs && idle < p.WarmPrefix:
		return fmt.Sprintf("it is required for WARM_PREFIX_TARGET: %d", p.WarmPrefix)
	case !p.PrefixDelegation && !byIPs && free < p.WarmENI*perENI:
		return fmt.Sprintf("it is required for WARM_ENI_TARGET: %d", p.WarmENI)
	}
	return ""
}
