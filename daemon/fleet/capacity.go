package fleet

import (
	"slices"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/capacity/whatif"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// MaxPods is kubelet's setting as the daemon reports it, else as Kubernetes does; nil if
// unknown.
func MaxPods(n document.NodeIPAM) *int {
	if n.Summary != nil && n.Summary.MaxPods != nil && n.Summary.MaxPods.Value != nil {
		return n.Summary.MaxPods.Value
	}
	if n.Object != nil {
		return n.Object.MaxPods
	}
	return nil
}

// Most is the most addresses of a card that pods can have: as many as the card can hold, or
// max-pods if that is lower, which byMaxPods reports; nil if unknown. Pods on further cards need
// one address each as well, which max-pods does not count.
func Most(n document.NodeIPAM, c introspect.CardSummary) (most *int, byMaxPods bool) {
	pods := MaxPods(n)
	if c.AddressLimit == nil || pods == nil || *pods <= 0 || *pods >= *c.AddressLimit || c.Card != 0 {
		return c.AddressLimit, false
	}
	return pods, true
}

// Capacity is Most for a bar of what the card holds: if it already holds far more than max-pods,
// more than a last prefix, as many as the card can hold.
func Capacity(n document.NodeIPAM, c introspect.CardSummary) (most *int, byMaxPods bool) {
	most, byMaxPods = Most(n, c)
	if byMaxPods && c.Total >= *most+limits.PrefixSize {
		return c.AddressLimit, false
	}
	return most, byMaxPods
}

// Room is how many more addresses a card could get that pods could use; nil if unknown.
func Room(n document.NodeIPAM, c introspect.CardSummary) *int {
	if c.AddressLimit == nil {
		return nil
	}
	most := *c.AddressLimit
	if pods := MaxPods(n); pods != nil && *pods > 0 {
		most = min(most, *pods)
	}
	return new(max(0, most-c.Total))
}

// instanceType returns the node's instance type, "" if unknown.
func instanceType(n document.NodeIPAM) string {
	switch {
	case n.Summary != nil && n.Summary.InstanceType != "":
		return n.Summary.InstanceType
	case n.Object != nil:
		return n.Object.InstanceType
	}
	return ""
}

// Caps on the limits that a node reports, several times those of the largest type: a
// simulation takes time for each address, and nodes may report anything.
const (
	mostReportedENIs  = 64
	mostReportedSlots = 128 // per ENI
)

// instanceOf returns the limits of a node. For a type missing from the table it uses what the
// daemon reports about the default network card, and assumes Nitro, as such types are new.
func instanceOf(n document.NodeIPAM) (limits.Instance, bool) {
	kind := instanceType(n)
	if i, ok := limits.Lookup(kind); ok || kind == "" || n.Summary == nil || len(n.Summary.Cards) == 0 {
		return i, ok
	}
	c := n.Summary.Cards[0]
	if c.ENILimit == nil || c.SlotsPerENI == nil || *c.ENILimit > mostReportedENIs || *c.SlotsPerENI > mostReportedSlots {
		return limits.Instance{}, false
	}
	i := limits.Instance{
		Type: kind, MaxENIs: *c.ENILimit, IPv4PerENI: *c.SlotsPerENI + 1, IPv6PerENI: -1, Hypervisor: "nitro",
		Cards: []limits.Card{{Index: 0, MaxENIs: *c.ENILimit}},
	}
	return i, i.Check() == nil
}

// MaxPodsRules applies the published rules to a node with its current settings; nil while its
// pool or its type is unknown.
func MaxPodsRules(n document.NodeIPAM) []maxpods.Rule {
	s := n.Summary
	i, ok := instanceOf(n)
	if !ok || s == nil || len(s.Cards) == 0 {
		return nil
	}
	p := maxpods.Planned{Input: maxpods.Input{
		InstanceType: i.Type, Instance: &i, PrefixDelegation: s.Cards[0].Mode == introspect.ModePrefix, IPv6: s.IPFamily == "ipv6",
		CustomNetworking: s.CustomNetworking != nil && *s.CustomNetworking, PodENI: s.Trunk != nil && s.Trunk.Enabled,
	}}
	if most := s.Targets.MaxENI; most != nil && *most > 0 {
		p.MaxENI, p.MaxENIGiven = *most, most
	}
	return slices.DeleteFunc(maxpods.Rules(p), func(r maxpods.Rule) bool { return r.Name == maxpods.RuleOurs })
}

// WhatIf returns the node's current state for a simulation; why says what is missing.
func WhatIf(n document.NodeIPAM) (node whatif.Node, why string) {
	s := n.Summary
	switch {
	case s == nil && n.Error != nil:
		return node, n.Error.Message
	case s == nil || len(s.Cards) == 0:
		return node, "its pool is unknown"
	case s.IPFamily == "ipv6":
		return node, "it is a node of an IPv6 cluster: its addresses have no limit, and no target counts"
	}
	kind := instanceType(n)
	i, ok := instanceOf(n)
	switch {
	case kind == "":
		return node, "its instance type is unknown"
	case !ok:
		return node, "its instance type " + kind + " is not in the table, and the node does not report its limits"
	}
	t := s.Targets
	if t.WarmENI == nil || t.WarmIP == nil || t.MinimumIP == nil || t.WarmPrefix == nil {
		return node, "neither its daemon nor its pod shows its targets"
	}
	c := s.Cards[0]
	to := whatif.Settings{
		Instance: i, WarmENI: max(0, *t.WarmENI), WarmIP: max(0, *t.WarmIP), MinimumIP: max(0, *t.MinimumIP), WarmPrefix: max(0, *t.WarmPrefix),
		PrefixDelegation: c.Mode == introspect.ModePrefix, MaxENI: max(0, maxENI(s)), Trunk: takesTrunk(s, i),
		Cooldown: cooldownOf(n.Summary), Existing: existing(n, c),
	}
	if most := MaxPods(n); most != nil {
		to.MaxPods = max(0, *most)
	}
	if s.CustomNetworking != nil {
		to.CustomNetworking = *s.CustomNetworking
	}
	// A node that claims more pods than addresses would be simulated for ever.
	return whatif.Node{Settings: to, Pods: max(0, min(c.Assigned, to.Capacity()))}, ""
}

// takesTrunk reports whether a trunk has an interface of the node, or one is kept for it. Our
// daemon, which keeps one only for a while, says so among the terms of max-pods.
func takesTrunk(s *introspect.Summary, i limits.Instance) bool {
	switch {
	case s.Trunk == nil:
		return false
	case s.Trunk.ENIID != "":
		return true
	}
	if s.MaxPods != nil {
		for _, t := range s.MaxPods.Terms {
			if t.Name == "trunk" {
				return t.Value > 0
			}
		}
	}
	return s.Trunk.Enabled && i.TrunkingCompatible != limits.No
}

// existing returns what the node's first network card has besides its settings.
func existing(n document.NodeIPAM, c introspect.CardSummary) (x whatif.Existing) {
	count := func(v int) int { return max(0, min(v, mostReportedENIs)) }
	if c.OtherENIs != nil {
		x.UnmanagedENIs = count(*c.OtherENIs)
	}
	if c.StatedENILimit != nil {
		x.StatedENIs = max(0, c.StatedENILimit.Limit)
	}
	if c.StatedSlots != nil {
		x.StatedSlots = max(0, c.StatedSlots.Limit)
	}
	excluded := func(card int, is, primary bool) {
		if is && card == c.Card {
			x.ExcludedENIs, x.PrimaryExcluded = count(x.ExcludedENIs+1), x.PrimaryExcluded || primary
		}
	}
	for _, e := range n.Summary.ENIs {
		excluded(e.Card, slices.Contains(e.Flags, introspect.ENIFlagExcluded), slices.Contains(e.Flags, introspect.ENIFlagPrimary))
	}
	if n.Summary.ENIs == nil {
		for _, e := range n.ENIs {
			excluded(e.Card, e.Excluded, e.Primary)
		}
	}
	return x
}
