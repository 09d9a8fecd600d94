package fleet

import (
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/whatif"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
)

// MaxPods is kubelet's setting as the daemon reports it, else as Kubernetes does; null: not
// known.
func MaxPods(n introspect.NodeIPAM) *int {
	if n.Summary != nil && n.Summary.MaxPods != nil && n.Summary.MaxPods.Value != nil {
		return n.Summary.MaxPods.Value
	}
	if n.Object != nil {
		return n.Object.MaxPods
	}
	return nil
}

// Capacity is how many addresses of a card pods can have at most: those that it can hold, or
// max-pods where that is lower, which byMaxPods says; null: not known. Where the card already
// holds far more than max-pods, it is what the card can hold.
func Capacity(n introspect.NodeIPAM, c introspect.CardSummary) (most *int, byMaxPods bool) {
	const prefix = 16 // the last one may exceed what pods can use
	pods := MaxPods(n)
	if c.AddressLimit == nil || pods == nil || *pods <= 0 || *pods >= *c.AddressLimit || c.Total >= *pods+prefix || c.Card != 0 {
		return c.AddressLimit, false
	}
	return pods, true
}

// room is how many addresses a card could get beyond those it holds, as far as pods can use
// them; null: not known.
func room(n introspect.NodeIPAM, c introspect.CardSummary) *int {
	if c.AddressLimit == nil {
		return nil
	}
	most := *c.AddressLimit
	if pods := MaxPods(n); pods != nil && *pods > 0 {
		most = min(most, *pods)
	}
	return new(max(0, most-c.Total))
}

// WhatIf is a node as it is, to simulate; why says what of it is not known.
func WhatIf(n introspect.NodeIPAM) (node whatif.Node, why string) {
	s := n.Summary
	switch {
	case s == nil && n.Error != nil:
		return node, n.Error.Message
	case s == nil || len(s.Cards) == 0:
		return node, "its pool is not known"
	case s.IPFamily == "ipv6":
		return node, "it is a node of an IPv6 cluster: its addresses have no limit, and no target counts"
	}
	i, ok := limits.Lookup(s.InstanceType)
	if !ok {
		return node, "its instance type " + show.Safe(show.OrUnknown(s.InstanceType)) + " is not in the table"
	}
	t := s.Targets
	if t.WarmENI == nil || t.WarmIP == nil || t.MinimumIP == nil || t.WarmPrefix == nil {
		return node, "it does not report its targets, as upstream's daemon does not"
	}
	node = whatif.Node{Pods: s.Cards[0].Assigned, Settings: whatif.Settings{
		Instance: i, WarmENI: *t.WarmENI, WarmIP: *t.WarmIP, MinimumIP: *t.MinimumIP, WarmPrefix: *t.WarmPrefix,
		PrefixDelegation: s.Cards[0].Mode == introspect.ModePrefix, Trunk: s.Trunk != nil && s.Trunk.ENIID != "",
	}}
	if t.MaxENI != nil {
		node.Settings.MaxENI = *t.MaxENI
	}
	if most := MaxPods(n); most != nil {
		node.Settings.MaxPods = *most
	}
	if s.CustomNetworking != nil {
		node.Settings.CustomNetworking = *s.CustomNetworking
	}
	if s.CooldownSeconds != nil {
		node.Settings.Cooldown = time.Duration(*s.CooldownSeconds * float64(time.Second))
	}
	return node, ""
}
