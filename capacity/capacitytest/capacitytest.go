// Package capacitytest lists nodes for tests that compare what different parts say about the
// capacity of a node. Only tests import it.
package capacitytest

import (
	"fmt"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
)

// Node is a node: its type and the input of the rule for max-pods.
type Node struct {
	limits.Instance
	maxpods.Input
}

func (n Node) String() string {
	in := n.Input
	return fmt.Sprintf("%s MAX_ENI=%d trunk=%v/%v custom=%v prefixes=%v unmanaged=%d excluded=%d/%v stated=%d/%d", n.Type, in.MaxENI,
		in.TrunkAttached, in.PodENI, in.CustomNetworking, in.PrefixDelegation, in.UnmanagedENIs, in.ExcludedENIs, in.PrimaryExcluded,
		in.StatedENIs, in.StatedSlots)
}

// Trunk reports whether a trunk has an interface, or one is kept for it.
func (n Node) Trunk() bool {
	return n.TrunkAttached || n.PodENI && n.TrunkingCompatible != limits.No
}

// Prefixes reports whether the slots hold prefixes.
func (n Node) Prefixes() bool { return n.Input.PrefixDelegation && n.Instance.PrefixDelegation() }

// FurtherExcluded is the number of excluded interfaces without the primary one.
func (n Node) FurtherExcluded() int {
	if n.PrimaryExcluded {
		return n.ExcludedENIs - 1
	}
	return n.ExcludedENIs
}

// existing are the interfaces that others take, and the limits that EC2 stated.
var existing = []maxpods.Input{
	{}, {UnmanagedENIs: 1}, {ExcludedENIs: 1}, {ExcludedENIs: 2, PrimaryExcluded: true}, {UnmanagedENIs: 1, StatedENIs: 2, StatedSlots: 3},
}

// Nodes yields every known type with every combination of settings and interfaces of others.
func Nodes(yield func(Node) bool) {
	for name := range limits.Types() {
		i, _ := limits.Lookup(name)
		for _, maxENI := range []int{0, 1, 2, i.MaxENIs + 1} {
			for _, x := range existing {
				for settings := range 12 {
					in := x
					in.InstanceType, in.MaxENI = name, maxENI
					in.CustomNetworking, in.PrefixDelegation = settings&1 > 0, settings&2 > 0
					in.TrunkAttached, in.PodENI = settings/4 == 1, settings/4 > 0
					if in.TrunkAttached && i.TrunkingCompatible == limits.No {
						continue
					}
					if !yield(Node{i, in}) {
						return
					}
				}
			}
		}
	}
}
