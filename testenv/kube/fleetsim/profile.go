package fleetsim

import (
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/warmpool"
)

// profile is the configuration of a group of nodes.
type profile struct {
	group    string // the node group
	instance string
	policy   warmpool.Policy
	podENI   bool
	share    int // of 100 nodes

	limits  limits.Instance
	maxPods int
}

// hostPods is the number of pods in the host's network: only aws-node, since there is no
// kube-proxy.
const hostPods = 1

// cooldown is the fleet's IP_COOLDOWN_PERIOD.
const cooldown = 30 * time.Second

// profiles returns the kinds of nodes in a fleet, each with its percentage. A cluster has one
// IP family: with IPv6 every interface has a /80, and targets have no effect.
func profiles(ipv6 bool) []*profile {
	all := []*profile{
		{group: "general", instance: "m5.large", share: 33, policy: warmpool.Policy{WarmENI: 1}},
		{group: "general-xl", instance: "m5.2xlarge", share: 14, policy: warmpool.Policy{WarmENI: 1, WarmIP: 5, MinIP: 20}},
		{group: "small", instance: "t3.medium", share: 12, policy: warmpool.Policy{WarmENI: 1, WarmIP: 2}},
		{group: "arm", instance: "m6g.xlarge", share: 10, policy: warmpool.Policy{WarmENI: 1, WarmIP: 4, MinIP: 10}},
		{group: "dense", instance: "c5.2xlarge", share: 18, policy: warmpool.Policy{WarmENI: 1, PrefixDelegation: true, WarmPrefix: 1}},
		{group: "secured", instance: "m5.4xlarge", share: 6, podENI: true, policy: warmpool.Policy{WarmENI: 1, WarmIP: 6, MinIP: 24}},
		{group: "custom", instance: "c5.xlarge", share: 5, policy: warmpool.Policy{WarmENI: 1, CustomNetworking: true}},
		{group: "training", instance: "p4d.24xlarge", share: 2, policy: warmpool.Policy{WarmENI: 1, MultiNIC: true, WarmIP: 8, MinIP: 16}},
	}
	for _, p := range all {
		if ipv6 {
			p.policy, p.podENI = warmpool.Policy{WarmENI: 1, IPv6: true, PrefixDelegation: true}, false
		}
		p.limits, _ = limits.Lookup(p.instance) // the table has them all: a test counts their pods
		r := maxpods.Compute(maxpods.Input{
			InstanceType: p.instance, PrefixDelegation: p.policy.PrefixDelegation, CustomNetworking: p.policy.CustomNetworking,
			PodENI: p.podENI, MultiNIC: p.policy.MultiNIC, IPv6: p.policy.IPv6, TrunkAttached: p.podENI, HostPods: new(hostPods),
		})
		p.maxPods = min(r.Recommended, 110)
		p.policy.MaxPods = p.maxPods
		p.policy.Cooldown, p.policy.ScaleDownInterval = cooldown, 30*time.Second
		p.policy.ENIMinAge, p.policy.SubnetRefresh = time.Minute, time.Minute
	}
	return all
}

// pick chooses a profile by a number from 0 to 99.
func pick(all []*profile, n int) *profile {
	for _, p := range all {
		if n -= p.share; n < 0 {
			return p
		}
	}
	return all[0]
}
