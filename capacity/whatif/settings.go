package whatif

import (
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/warmpool"
)

// Settings are the settings that a node's pool obeys. The targets are as in the
// environment: WARM_IP_TARGET or MINIMUM_IP_TARGET above 0 overrides the others.
type Settings struct {
	Instance         limits.Instance
	MaxPods          int           // the pool stops growing at this many addresses; 0: no limit
	MaxENI           int           // MAX_ENI; no limit if below 1
	PrefixDelegation bool          // ENABLE_PREFIX_DELEGATION
	CustomNetworking bool          // AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG
	Trunk            bool          // a trunk takes an interface, see [Settings.Possible]
	Cooldown         time.Duration // IP_COOLDOWN_PERIOD; 0 means 30 s

	WarmENI, WarmIP, MinimumIP, WarmPrefix int
	Existing
}

// Existing is what an existing node has besides its settings, as in [limits.PoolInput]. The
// zero value is that of a planned node.
type Existing struct {
	UnmanagedENIs, ExcludedENIs int
	PrimaryExcluded             bool
	StatedENIs, StatedSlots     int
}

// prefixes reports whether slots hold prefixes; on types without prefix delegation they
// hold addresses.
func (s Settings) prefixes() bool { return s.PrefixDelegation && s.Instance.PrefixDelegation() }

// pool is the most that the pool can hold.
func (s Settings) pool() limits.Pool {
	return s.Instance.Pool(limits.PoolInput{
		MaxENI: s.MaxENI, StatedENIs: s.StatedENIs, StatedSlots: s.StatedSlots, Trunk: s.Trunk, CustomNetworking: s.CustomNetworking,
		Prefixes: s.prefixes(), UnmanagedENIs: s.UnmanagedENIs, ExcludedENIs: s.ExcludedENIs, PrimaryExcluded: s.PrimaryExcluded,
	})
}

// Capacity is the number of pods that can have an address of the pool.
func (s Settings) Capacity() int { return s.pool().Addresses }

// others is the number of interfaces that the pool has no use for, without the trunk and the
// primary one.
func (s Settings) others() int {
	n := max(0, s.UnmanagedENIs) + max(0, s.ExcludedENIs)
	if s.PrimaryExcluded {
		n--
	}
	return max(0, n)
}

// limits are what EC2 lets the node have.
func (s Settings) limits() warmpool.Limits {
	most := s.Instance.Pool(limits.PoolInput{StatedENIs: s.StatedENIs, StatedSlots: s.StatedSlots})
	return warmpool.Limits{IPv4PerENI: most.Slots + 1, ENIsByCard: []int{most.Limit}}
}

// Room is the number of pods with an address that kubelet accepts.
func (s Settings) Room() int {
	if s.MaxPods > 0 {
		return max(0, s.MaxPods-limits.HostPods)
	}
	return s.Capacity()
}

// Possible returns the settings without a trunk if the instance cannot have one.
func (s Settings) Possible() Settings {
	s.Trunk = s.Trunk && s.Instance.TrunkingCompatible != limits.No
	return s
}

// Idle returns why the pool ignores a setting; "" if it does not.
func (s Settings) Idle(name string) string {
	byAddress := s.WarmIP > 0 || s.MinimumIP > 0
	switch name {
	case "maxPods":
		return unless(s.MaxPods > 0, "no limit")
	case "MAX_ENI":
		return unless(s.MaxENI > 0, "no limit")
	case "ENABLE_PREFIX_DELEGATION":
		return unless(!s.PrefixDelegation || s.prefixes(), "not on "+s.Instance.Type)
	case "ENABLE_POD_ENI":
		return unless(s.Instance.TrunkingCompatible != limits.No, "no trunk on "+s.Instance.Type)
	case "WARM_IP_TARGET":
		return unless(s.WarmIP > 0, "not set")
	case "MINIMUM_IP_TARGET":
		return unless(s.MinimumIP > 0, "not set")
	case "WARM_ENI_TARGET":
		if byAddress {
			return "overridden by addresses"
		}
		return unless(!s.prefixes(), "mode is prefix")
	case "WARM_PREFIX_TARGET":
		if !s.prefixes() {
			return "mode is secondary-ip"
		}
		return unless(!byAddress, "overridden by addresses")
	}
	return ""
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// Policy returns the planner's policy, with the timers of the daemon's defaults.
func (s Settings) Policy() warmpool.Policy {
	p := warmpool.Policy{
		PrefixDelegation: s.prefixes(), CustomNetworking: s.CustomNetworking,
		WarmENI: s.WarmENI, WarmIP: s.WarmIP, MinIP: s.MinimumIP, WarmPrefix: s.WarmPrefix, MaxENI: max(0, s.MaxENI), MaxPods: s.MaxPods,
		Cooldown: s.Cooldown, ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute, SubnetRefresh: time.Minute,
	}
	if p.Cooldown == 0 {
		p.Cooldown = 30 * time.Second
	}
	return p
}
