package fleet

import (
	"slices"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// complete fills the gaps in a summary made from upstream's documents or from metrics, using
// the Node object and the published limits of its instance type. It keeps what the daemon
// reported. MAX_ENI, which upstream does not report, is assumed unset.
func complete(s *introspect.Summary, enis []introspect.NodeENI, o *document.NodeObject) {
	if o == nil {
		return
	}
	if s.InstanceType == "" {
		s.InstanceType = o.InstanceType
	}
	if s.InstanceID == "" {
		s.InstanceID = o.InstanceID
	}
	if s.Version == "" && o.Daemon != nil {
		s.Version = o.Daemon.Tag()
	}
	if s.MaxPods == nil && o.MaxPods != nil {
		s.MaxPods = &introspect.MaxPods{Value: o.MaxPods, Source: "node"}
	}
	i, known := limits.Lookup(s.InstanceType)
	if !known {
		return
	}
	if s.Trunk != nil {
		completeTrunk(s.Trunk, i, o)
	}
	perCard := i.ENIsByCard()
	for at := range s.Cards {
		c := &s.Cards[at]
		if c.Card < 0 || c.Card >= len(perCard) {
			continue
		}
		setIfNull(&c.ENILimit, perCard[c.Card])
		slots := max(0, i.IPv4PerENI-1)
		if s.IPFamily == "ipv6" {
			slots = 1 // one /80
		}
		setIfNull(&c.SlotsPerENI, slots)
	}
	judgeMaxPods(s, enis, i, o)
}

func setIfNull(into **int, v int) {
	if *into == nil {
		*into = &v
	}
}

func completeTrunk(t *introspect.Trunk, i limits.Instance, o *document.NodeObject) {
	if t.Supported == nil && i.TrunkingCompatible != limits.Unknown {
		supported := i.TrunkingCompatible == limits.Yes
		t.Supported = &supported
	}
	switch {
	case t.BranchLimit != nil:
	case o.BranchENIs != nil:
		t.BranchLimit = o.BranchENIs
	case i.TrunkingCompatible == limits.Yes:
		setIfNull(&t.BranchLimit, i.BranchENIs)
	}
}

// judgeMaxPods computes how many pods the addresses allow, if the settings it depends on are
// known: custom networking, and the mode, which it infers from the pool. A pool that is
// changing between modes has no stable figure.
func judgeMaxPods(s *introspect.Summary, enis []introspect.NodeENI, i limits.Instance, o *document.NodeObject) {
	card := slices.IndexFunc(s.Cards, func(c introspect.CardSummary) bool { return c.Card == i.DefaultCard })
	if s.CustomNetworking == nil || card < 0 || s.Cards[card].Mode == introspect.ModeMixed {
		return
	}
	in := maxpods.Input{
		InstanceType: i.Type, PrefixDelegation: s.Cards[card].Mode == introspect.ModePrefix,
		CustomNetworking: *s.CustomNetworking, IPv6: s.IPFamily == "ipv6", BranchENIs: o.BranchENIs,
	}
	if o.MaxPods != nil {
		in.MaxPods = *o.MaxPods
	}
	if s.Trunk != nil {
		in.BranchPods = s.Trunk.BranchUsed
	}
	for _, e := range enis {
		if e.Card != i.DefaultCard {
			continue
		}
		in.TrunkAttached = in.TrunkAttached || e.Trunk
		if e.Excluded {
			in.ExcludedENIs++
			in.PrimaryExcluded = in.PrimaryExcluded || e.Primary
		}
	}
	r := maxpods.Compute(in)
	if !in.IPv6 {
		setIfNull(&s.Cards[card].AddressLimit, r.PodIPs)
	}
	s.MaxPods = introspect.MaxPodsOf(o.MaxPods, "node", r)
}
