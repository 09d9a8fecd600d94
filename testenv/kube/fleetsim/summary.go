package fleetsim

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

func (w *world) callList() []introspect.EC2Calls {
	out := []introspect.EC2Calls{}
	for _, action := range slices.Sorted(maps.Keys(w.calls)) {
		out = append(out, *w.calls[action])
	}
	return out
}

// summary returns /v1/summary.
func (w *world) summary() introspect.Summary {
	n, p := w.node, w.node.profile
	no, started := false, n.started.UTC()
	seconds := cooldown.Seconds()
	custom, cordoned := p.policy.CustomNetworking, n.cordoned
	s := introspect.Summary{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Version: n.garble(daemonVersion), Node: n.garble(n.name),
		InstanceID: n.instanceID, InstanceType: n.garble(p.instance), IPFamily: "ipv4", StartedAt: &started,
		CustomNetworking: &custom, Cordoned: &cordoned, Terminating: &no, CooldownSeconds: &seconds,
		Targets: w.targets(p.policy), Operations: []introspect.Operation{}, Backoffs: []introspect.Backoff{}, LastErrors: []introspect.LastError{},
	}
	if p.policy.IPv6 {
		s.IPFamily = "ipv6"
	}
	w.pools(&s)
	w.clocks(&s)
	in := maxpods.Input{
		InstanceType: p.instance, MaxPods: p.maxPods, PrefixDelegation: p.policy.PrefixDelegation, CustomNetworking: custom,
		PodENI: p.podENI, MultiNIC: p.policy.MultiNIC, IPv6: p.policy.IPv6, TrunkAttached: p.podENI, HostPods: new(hostPods),
	}
	s.MaxPods = introspect.MaxPodsOf(&in.MaxPods, "node", maxpods.Compute(in))
	supported, limit := p.limits.BranchENIs > 0, p.limits.BranchENIs
	s.Trunk = &introspect.Trunk{Enabled: p.podENI, Supported: &supported, BranchLimit: &limit}
	if p.podENI {
		used := w.branchPods.inUse()
		s.Trunk.BranchUsed = &used
		s.Trunk.BranchWaiting, s.Trunk.WaitingSince = w.branchPods.waiting()
		for _, e := range w.Book.Snapshot().ENIs {
			if e.Trunk {
				s.Trunk.ENIID = n.garble(string(e.ID))
			}
		}
	}
	waiting, unplaced, problems := 0, 0, 0
	for _, pod := range w.pods {
		if pod.waits.IsZero() {
			continue
		}
		waiting++
		if at := pod.waits.UTC(); s.WaitingSince == nil || at.Before(*s.WaitingSince) {
			s.WaitingSince = &at
		}
	}
	s.WaitingADDs, s.Unplaced, s.ConfigProblems = &waiting, &unplaced, &problems
	available, asOf := n.available(w.Now.Truncate(time.Minute)), w.Now.UTC().Truncate(time.Minute)
	s.Subnets = []introspect.Subnet{{ID: n.subnet, CIDR: n.prefix.String(), Available: &available, AsOf: &asOf, HistorySince: n.historySince()}}
	for _, e := range slices.Backward(w.errors) {
		e.Message = n.garble(e.Message)
		s.LastErrors = append(s.LastErrors, e)
	}
	slices.SortStableFunc(s.LastErrors, func(a, b introspect.LastError) int { return b.At.Compare(a.At) })
	s.EC2Calls = w.callList()
	adds, dels := w.adds, w.dels
	adds.Failed, dels.Failed = new(*adds.Failed), new(*dels.Failed)
	adds.Causes, dels.Causes = maps.Clone(adds.Causes), maps.Clone(dels.Causes)
	s.ADDs, s.DELs = &adds, &dels
	return s
}

func (w *world) targets(p warmpool.Policy) introspect.Targets {
	return introspect.Targets{WarmENI: &p.WarmENI, WarmIP: &p.WarmIP, MinimumIP: &p.MinIP, WarmPrefix: &p.WarmPrefix, MaxENI: &p.MaxENI}
}

// pools fills in cards and ENIs.
func (w *world) pools(s *introspect.Summary) {
	snap, in := w.Book.Snapshot(), w.snapshot()
	kind, _ := w.Kind()
	mode := introspect.ModeSecondaryIP
	if kind == ipam.Prefixes {
		mode = introspect.ModePrefix
	}
	for card, limit := range in.Limits.ENIsByCard {
		t := snap.Totals(card, kind, w.Now, cooldown)
		p, none := w.node.profile, 0
		pool := p.limits.CardPool(card, limits.PoolInput{
			MaxENI: p.policy.MaxENI, Trunk: p.podENI, CustomNetworking: p.policy.CustomNetworking,
			Prefixes: kind == ipam.Prefixes, IPv6: p.policy.IPv6,
		})
		c := introspect.CardSummary{
			Card: card, Mode: mode, OtherENIs: &none, ENILimit: &limit, SlotsPerENI: &pool.Slots, AddressLimit: &pool.Addresses,
			ENIs: new(0), Total: t.Total, Assigned: t.Assigned, Cooling: &t.Cooling, Free: t.Free, Prefixes: &t.Prefixes, FreePrefixes: &t.FreePrefixes,
		}
		if w.node.has(Lying) {
			c.Total, c.Free = c.Total+7, c.Free+7
		}
		for i := range snap.ENIs {
			if snap.ENIs[i].Card == card {
				*c.ENIs++
			}
		}
		s.Cards = append(s.Cards, c)
	}
	s.ENIs = []introspect.ENISummary{}
	for i := range snap.ENIs {
		e := &snap.ENIs[i]
		out := introspect.ENISummary{ID: w.node.garble(string(e.ID)), Card: e.Card, Device: e.Device, SubnetID: e.SubnetID, Flags: []string{}}
		for _, f := range []struct {
			set  bool
			flag string
		}{{e.Primary, introspect.ENIFlagPrimary}, {e.Trunk, introspect.ENIFlagTrunk}, {e.Excluded, introspect.ENIFlagExcluded}, {e.Held, introspect.ENIFlagHeld}} {
			if f.set {
				out.Flags = append(out.Flags, f.flag)
			}
		}
		for j := range e.CIDRs {
			if c := &e.CIDRs[j]; !c.Held && c.IsPrefix() == (kind == ipam.Prefixes) {
				cooling := c.Cooling(w.Now, cooldown)
				out.Total, out.Assigned, out.Cooling = out.Total+size(c.Prefix), out.Assigned+c.Assigned, out.Cooling+cooling
			}
		}
		out.Free = out.Total - out.Assigned - out.Cooling
		s.ENIs = append(s.ENIs, out)
	}
}

func size(p netip.Prefix) int { return 1 << (p.Addr().BitLen() - p.Bits()) }

// clocks fills in the pending operations and the back-offs.
func (w *world) clocks(s *introspect.Summary) {
	kinds := map[warmpool.PendingKind]string{
		warmpool.PendingAttach: "attach", warmpool.PendingAssign: "assign", warmpool.PendingRelease: "release", warmpool.PendingDetach: "detach",
	}
	for i := range w.Ops {
		op := &w.Ops[i]
		begun := op.Begun.UTC()
		s.Operations = append(s.Operations, introspect.Operation{
			Kind: kinds[op.Pending.Kind], ENIID: string(op.Pending.ENI), Card: op.Pending.Card, Addresses: op.Pending.IPs, Prefixes: op.Pending.Prefixes,
			Reason: string(op.Action.Why()), StartedAt: &begun,
		})
	}
	hold := func(scope, id string, until time.Time) {
		if until.After(w.Now) {
			s.Backoffs = append(s.Backoffs, introspect.Backoff{Scope: scope, ID: id, Until: until.UTC(), Cause: string(w.BackoffCause)})
		}
	}
	hold("attach", "", w.AttachBackoff)
	for _, id := range slices.Sorted(maps.Keys(w.ENIBackoff)) {
		hold("eni", string(id), w.ENIBackoff[id])
	}
	hold("subnet", w.node.subnet, w.SubnetBackoff)
}
