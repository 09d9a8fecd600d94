package fleettest

import (
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
)

// maxPods returns what the daemon reports for an input.
func maxPods(in maxpods.Input) *introspect.MaxPods {
	return introspect.MaxPodsOf(&in.MaxPods, "node", maxpods.Compute(in))
}

// MaxPodsInputs returns nodes whose calculations cover every existing term.
func MaxPodsInputs() []maxpods.Input {
	return []maxpods.Input{
		{InstanceType: "m5.large", MaxPods: 29},
		{InstanceType: "m5.4xlarge", MaxPods: 737, PrefixDelegation: true, MaxENI: 2, TrunkAttached: true},
		{InstanceType: "m5.4xlarge", UnmanagedENIs: 1, ExcludedENIs: 1, LeftoverSlots: 3, CustomNetworking: true, PodENI: true},
		{InstanceType: "t3.small", PodENI: true},
		{InstanceType: "m5.large", IPv6: true},
		{InstanceType: "m5.large", MaxENI: 1, UnmanagedENIs: 1},
		{InstanceType: "m5.large", StatedENIs: 2, StatedSlots: 5},
		{InstanceType: "p5.48xlarge", MultiNIC: true},
		{InstanceType: "no.such"},
	}
}
