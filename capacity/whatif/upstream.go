package whatif

import (
	"cnictl/capacity/limits"
)

// prefixSize is the number of addresses of a /28.
const prefixSize = 16

// Settings are those that a node's pool obeys. The targets are as the environment has them:
// WARM_IP_TARGET or MINIMUM_IP_TARGET above 0 outranks the others.
type Settings struct {
	Instance         limits.Instance
	MaxPods          int  // at this many addresses the pool stops growing; 0: it does not
	MaxENI           int  // MAX_ENI; below 1: no limit
	PrefixDelegation bool // ENABLE_PREFIX_DELEGATION
	CustomNetworking bool // AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG
	Trunk            bool // a trunk takes an interface

	WarmENI, WarmIP, MinimumIP, WarmPrefix int
}

// prefixes reports whether slots hold prefixes: on other types they hold addresses.
func (s Settings) prefixes() bool { return s.PrefixDelegation && s.Instance.PrefixDelegation() }

// slots are those of an interface.
func (s Settings) slots() int { return max(0, s.Instance.IPv4PerENI-1) }

// Usable are the interfaces that may serve pods.
func (s Settings) Usable() int {
	n := s.Instance.MaxENIs
	if s.MaxENI >= 1 {
		n = min(n, s.MaxENI)
	}
	if s.Trunk {
		n--
	}
	if s.CustomNetworking {
		return max(0, n-1)
	}
	return max(1, n) // the primary is there
}

// Capacity is how many pods can have an address of the pool.
func (s Settings) Capacity() int {
	n := s.Usable() * s.slots()
	if s.prefixes() {
		n *= prefixSize
	}
	return n
}

// Held is what a node's pool holds, and the requests that it took.
type Held struct {
	ENIs      int // attached, with the trunk and a primary that serves no pods
	Slots     int // addresses or prefixes assigned to interfaces
	Addresses int // that pods can have: 16 for a prefix
	Pods      int // that have one
	Assigns   int // AssignPrivateIpAddresses calls
	NewENIs   int // interfaces created and attached
}

// Wasted are addresses that no pod has.
func (h Held) Wasted() int { return h.Addresses - h.Pods }

// SubnetAddresses are those taken from subnets, with a primary address for each interface.
func (h Held) SubnetAddresses() int { return h.Addresses + h.ENIs }

// Upstream grows the pool of an idle node as upstream's daemon does while pods come one at a
// time, each after the pool has settled. Pods that find no address wait, and have none.
func Upstream(s Settings, pods int) Held {
	perSlot := 1
	if s.prefixes() {
		perSlot = prefixSize
	}
	u, slots := s.Usable(), s.slots()
	h := Held{ENIs: 1}
	if s.CustomNetworking {
		h.ENIs--
	}
	serving := h.ENIs // interfaces that serve pods
	if u == 0 {
		serving = 0
	}
	settle := func() {
		for s.MaxPods <= 0 || h.Addresses < s.MaxPods {
			short := s.short(h)
			if short <= 0 {
				return
			}
			if room := serving*slots - h.Slots; room > 0 {
				short = min(short, room)
				h.Assigns++
			} else if serving < u {
				short = min(short, slots)
				serving++
				h.NewENIs++
			} else {
				return
			}
			h.Slots += short
			h.Addresses += short * perSlot
		}
	}
	settle()
	for range pods {
		if h.Pods < h.Addresses {
			h.Pods++
		}
		settle()
	}
	h.ENIs = max(1, serving)
	if s.CustomNetworking {
		h.ENIs = serving + 1
	}
	if s.Trunk {
		h.ENIs++
	}
	return h
}

// short is how many slots the daemon asks for in one step.
func (s Settings) short(h Held) int {
	free := h.Addresses - h.Pods
	if s.WarmIP > 0 || s.MinimumIP > 0 {
		short := max(s.WarmIP-free, s.MinimumIP-h.Addresses)
		if s.prefixes() {
			return (short + prefixSize - 1) / prefixSize
		}
		return short
	}
	if s.prefixes() {
		used := (h.Pods + prefixSize - 1) / prefixSize
		if s.WarmPrefix == 0 && free == 0 {
			return 1
		}
		return s.WarmPrefix - (h.Slots - used)
	}
	if free < s.WarmENI*s.slots() || s.WarmENI == 0 && free == 0 {
		return s.slots()
	}
	return 0
}
