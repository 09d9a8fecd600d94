package reading

import (
	"cnictl/capacity/limits"
	"cnictl/doctor/evidence"
)

// InstanceType returns what the built-in table knows about a type.
func InstanceType(name string) evidence.InstanceType {
	t, known := limits.Lookup(name)
	if !known {
		return evidence.InstanceType{InstanceType: name}
	}
	out := evidence.InstanceType{
		InstanceType: t.Type, Known: true, MaxENIs: &t.MaxENIs, IPv4PerENI: &t.IPv4PerENI, Hypervisor: t.Hypervisor, BareMetal: &t.BareMetal,
		BranchENIs: &t.BranchENIs,
	}
	if t.TrunkingCompatible != limits.Unknown {
		out.Trunk = new(t.TrunkingCompatible == limits.Yes)
	}
	return out
}
