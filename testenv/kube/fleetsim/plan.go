package fleetsim

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

func planQuery(values url.Values) (introspect.PlanQuery, *introspect.Fault) {
	var q introspect.PlanQuery
	known := map[string]**int{}
	for _, p := range q.Parameters() {
		known[p.Name] = p.Value
	}
	for name := range values {
		into, ok := known[name]
		v, err := strconv.Atoi(values.Get(name))
		if !ok || err != nil || v < 0 || v > introspect.MaxTarget {
			return q, badParameter("parameter %.60q with %.60q: want a target of the pool and a number", name, values.Get(name))
		}
		*into = &v
	}
	return q, nil
}

// planned returns /v1/plan.
func (w *world) planned(q introspect.PlanQuery) introspect.NodePlan {
	policy := w.node.profile.policy
	was := policy
	for asked, of := range map[*int]*int{
		q.WarmENI: &policy.WarmENI, q.WarmIP: &policy.WarmIP, q.MinimumIP: &policy.MinIP, q.WarmPrefix: &policy.WarmPrefix, q.MaxENI: &policy.MaxENI, q.MaxPods: &policy.MaxPods,
	} {
		if asked != nil {
			*of = *asked
		}
	}
	in := w.snapshot()
	doc := introspect.NodePlan{
		APIVersion: introspect.APIVersion, Kind: introspect.KindPlan, WhatIf: was != policy, Targets: w.targets(policy), MaxPods: policy.MaxPods,
		Actions: []introspect.PlannedAction{}, Blocked: []introspect.BlockedCard{}, Unmet: []introspect.UnmetTarget{},
	}
	for _, a := range warmpool.Plan(in, policy, w.Now) {
		out := introspect.PlannedAction{CIDRs: []netip.Prefix{}, Reason: string(a.Why()), Title: a.Why().Title(), Text: fmt.Sprint(a)}
		on := func(kind string, id ipam.ENIID) {
			out.Kind, out.ENIID = kind, string(id)
			for i := range in.Book.ENIs {
				if e := &in.Book.ENIs[i]; e.ID == id {
					card, device := e.Card, e.Device
					out.Card, out.Device, out.SubnetID = &card, &device, e.SubnetID
				}
			}
		}
		switch a := a.(type) {
		case warmpool.AttachENI:
			out.Kind, out.Card, out.Device, out.SubnetID = introspect.ActionAttachENI, &a.Card, &a.Device, a.SubnetID
			out.Count, out.Prefixes = cmp.Or(a.Prefixes, a.IPs), a.Prefixes > 0
		case warmpool.AssignAddresses:
			on(introspect.ActionAssignAddresses, a.ENI)
			out.Count = a.Count
		case warmpool.AssignPrefixes:
			on(introspect.ActionAssignPrefixes, a.ENI)
			out.Count, out.Prefixes = a.Count, true
		case warmpool.UnassignAddresses:
			on(introspect.ActionUnassignAddresses, a.ENI)
			out.Count, out.CIDRs = len(a.CIDRs), a.CIDRs
		case warmpool.UnassignPrefixes:
			on(introspect.ActionUnassignPrefixes, a.ENI)
			out.Count, out.CIDRs, out.Prefixes = len(a.CIDRs), a.CIDRs, true
		case warmpool.DetachENI:
			on(introspect.ActionDetachENI, a.ENI)
		case warmpool.Wait:
			until := a.Until.UTC()
			out.Kind, out.Until = introspect.ActionWait, &until
		}
		doc.Actions = append(doc.Actions, out)
	}
	for card := range in.Limits.ENIsByCard {
		if code, message, blocked := warmpool.Blocked(in, policy, w.Now, card); blocked {
			doc.Blocked = append(doc.Blocked, introspect.BlockedCard{Card: card, Cause: string(code), Message: w.node.garble(message)})
		}
	}
	return doc
}

func badParameter(format string, args ...any) *introspect.Fault {
	return &introspect.Fault{Code: introspect.FaultBadParameter, Message: fmt.Sprintf(format, args...)}
}
