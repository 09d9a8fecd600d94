package fleet

import (
	"slices"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
)

// PoolSettings are the settings of the daemon's pod that complete a summary.
var PoolSettings = []string{
	"WARM_ENI_TARGET", "WARM_IP_TARGET", "MINIMUM_IP_TARGET", "WARM_PREFIX_TARGET", "MAX_ENI", "IP_COOLDOWN_PERIOD",
	"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "ENABLE_POD_ENI",
}

// settings returns the settings of the target's daemon as its pod declares them; false if unknown.
func (t Target) settings() (config.Config, bool) {
	if t.Env == nil {
		return config.Config{}, false
	}
	c, _ := config.Load(func(name string) (string, bool) { v, ok := t.Env[name]; return v, ok })
	return c, true
}

// completeSettings fills in the settings that upstream's daemon does not report.
func completeSettings(s *introspect.Summary, c config.Config) {
	setIfNull(&s.Targets.WarmENI, c.WarmENI)
	setIfNull(&s.Targets.WarmIP, c.WarmIP)
	setIfNull(&s.Targets.MinimumIP, c.MinIP)
	setIfNull(&s.Targets.WarmPrefix, c.WarmPrefix)
	setIfNull(&s.Targets.MaxENI, max(0, c.MaxENI))
	setIfNull(&s.CustomNetworking, c.CustomNetworking)
	setIfNull(&s.CooldownSeconds, c.Cooldown.Seconds())
	if s.Trunk == nil && c.PodENI {
		s.Trunk = &introspect.Trunk{Enabled: true}
	}
}

// complete fills the gaps in a summary made from upstream's documents or from metrics, using
// the Node object, the settings of its daemon's pod, and the published limits of its instance
// type. It keeps what the daemon reported. MAX_ENI is assumed unset if that pod was not read.
func (t Target) complete(s *introspect.Summary, enis []introspect.NodeENI) {
	if c, known := t.settings(); known {
		completeSettings(s, c)
	}
	o := t.Object
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
		pool := i.CardPool(c.Card, limits.PoolInput{MaxENI: maxENI(s), IPv6: s.IPFamily == "ipv6"})
		setIfNull(&c.ENILimit, pool.Limit)
		setIfNull(&c.SlotsPerENI, pool.Slots)
	}
	judgeMaxPods(s, enis, i, o)
}

// maxENI is MAX_ENI; 0 if it is unset or unknown.
func maxENI(s *introspect.Summary) int {
	if s.Targets.MaxENI == nil {
		return 0
	}
	return *s.Targets.MaxENI
}

func setIfNull[T any](into **T, v T) {
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
		CustomNetworking: *s.CustomNetworking, IPv6: s.IPFamily == "ipv6", BranchENIs: o.BranchENIs, MaxENI: maxENI(s),
		PodENI: s.Trunk != nil && s.Trunk.Enabled,
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
