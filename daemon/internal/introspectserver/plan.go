package introspectserver

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// Pool is the planner's input at one moment.
type Pool struct {
	Snapshot warmpool.Snapshot
	Policy   warmpool.Policy
	Now      time.Time
}

// Plan computes a pool's next actions with the query's targets.
func Plan(p Pool, q introspect.PlanQuery) introspect.NodePlan {
	policy, whatIf := withTargets(p.Policy, q)
	doc := introspect.NodePlan{
		APIVersion: introspect.APIVersion, Kind: introspect.KindPlan, WhatIf: whatIf,
		Targets: introspect.Targets{
			WarmENI: &policy.WarmENI, WarmIP: &policy.WarmIP, MinimumIP: &policy.MinIP,
			WarmPrefix: &policy.WarmPrefix, MaxENI: &policy.MaxENI,
		},
		MaxPods: policy.MaxPods,
		Actions: []introspect.PlannedAction{},
		Blocked: []introspect.BlockedCard{},
		Unmet:   unmet(p, policy, q),
	}
	for _, a := range warmpool.Plan(p.Snapshot, policy, p.Now) {
		doc.Actions = append(doc.Actions, plannedAction(a, p.Snapshot.Book))
	}
	for card := range p.Snapshot.Limits.ENIsByCard {
		if card > 0 && (!policy.MultiNIC || card < len(p.Snapshot.Unmanaged) && p.Snapshot.Unmanaged[card]) {
			continue // gives no addresses, by design
		}
		if code, text, blocked := warmpool.Blocked(p.Snapshot, policy, p.Now, card); blocked {
			doc.Blocked = append(doc.Blocked, introspect.BlockedCard{Card: card, Cause: string(code), Message: text})
		}
	}
	return doc
}

func withTargets(p warmpool.Policy, q introspect.PlanQuery) (_ warmpool.Policy, changed bool) {
	for _, t := range []struct {
		asked *int
		of    *int
	}{
		{q.WarmENI, &p.WarmENI}, {q.WarmIP, &p.WarmIP}, {q.MinimumIP, &p.MinIP},
		{q.WarmPrefix, &p.WarmPrefix}, {q.MaxENI, &p.MaxENI}, {q.MaxPods, &p.MaxPods},
	} {
		if t.asked != nil && *t.asked != *t.of {
			*t.of, changed = *t.asked, true
		}
	}
	return p, changed
}

func plannedAction(a warmpool.Action, book ipam.Snapshot) introspect.PlannedAction {
	out := introspect.PlannedAction{CIDRs: []netip.Prefix{}, Reason: string(a.Why()), Title: a.Why().Title()}
	on := func(kind string, id ipam.ENIID) {
		out.Kind, out.ENIID = kind, string(id)
		for i := range book.ENIs {
			if e := &book.ENIs[i]; e.ID == id {
				card, device := e.Card, e.Device
				out.Card, out.Device, out.SubnetID = &card, &device, e.SubnetID
			}
		}
	}
	switch a := a.(type) {
	case warmpool.AttachENI:
		out.Kind, out.Card, out.Device, out.SubnetID = introspect.ActionAttachENI, &a.Card, &a.Device, a.SubnetID
		out.Count, out.Text = a.IPs, a.String()
		if a.Prefixes > 0 {
			out.Count, out.Prefixes = a.Prefixes, true
		}
	case warmpool.AssignAddresses:
		on(introspect.ActionAssignAddresses, a.ENI)
		out.Count, out.Text = a.Count, a.String()
	case warmpool.AssignPrefixes:
		on(introspect.ActionAssignPrefixes, a.ENI)
		out.Count, out.Prefixes, out.Text = a.Count, true, a.String()
	case warmpool.UnassignAddresses:
		on(introspect.ActionUnassignAddresses, a.ENI)
		out.Count, out.CIDRs, out.Text = len(a.CIDRs), a.CIDRs, a.String()
	case warmpool.UnassignPrefixes:
		on(introspect.ActionUnassignPrefixes, a.ENI)
		out.Count, out.Prefixes, out.CIDRs, out.Text = len(a.CIDRs), true, a.CIDRs, a.String()
	case warmpool.DetachENI:
		on(introspect.ActionDetachENI, a.ENI)
		out.Text = a.String()
	case warmpool.Wait:
		until := a.Until.UTC()
		out.Kind, out.Until, out.Text = introspect.ActionWait, &until, a.String()
	}
	return out
}
