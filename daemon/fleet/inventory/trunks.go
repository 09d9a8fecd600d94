package inventory

import (
	"cmp"
	"slices"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/cluster"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// TrunkOf returns the branch ENI state of a node; false if it has nothing to do with branch ENIs.
func TrunkOf(n *store.Node) (document.TrunkItem, bool) {
	var t *introspect.Trunk
	out := document.TrunkItem{Node: n.Metadata.Name, Pods: []document.BranchPod{}}
	if n.Summary != nil {
		t, out.InstanceType = n.Summary.Trunk, n.Summary.InstanceType
	}
	if n.Object != nil {
		out.InstanceType, out.Zone, out.Advertised = cmp.Or(out.InstanceType, n.Object.InstanceType), n.Object.Zone, n.Object.BranchENIs
	}
	advertised := out.Advertised != nil && *out.Advertised > 0
	switch {
	case t == nil && !advertised, t != nil && !t.Enabled && t.ENIID == "" && !advertised:
		return out, false
	case t == nil:
		out.State, out.BranchLimit = document.TrunkNotReported, out.Advertised
		return out, true
	}
	out.ENIID, out.BranchUsed, out.BranchLimit = t.ENIID, t.BranchUsed, t.BranchLimit
	if out.BranchLimit == nil {
		out.BranchLimit = out.Advertised
	}
	out.State = stateOf(t)
	return out, true
}

func stateOf(t *introspect.Trunk) string {
	switch {
	case t.ENIID != "" && t.Enabled:
		return document.TrunkAttached
	case !t.Enabled:
		return document.TrunkOff
	case t.Supported != nil && !*t.Supported:
		return document.TrunkUnsupported
	}
	return document.TrunkPending
}

// BranchShare is the share of a node's possible branch ENIs that is in use; false if unknown.
func BranchShare(t document.TrunkItem) (float64, bool) {
	if t.BranchUsed == nil || t.BranchLimit == nil || *t.BranchLimit <= 0 {
		return 0, false
	}
	return float64(*t.BranchUsed) / float64(*t.BranchLimit), true
}

// BranchPercent is Share in percent, for filters and orders.
func BranchPercent(t document.TrunkItem) (float64, bool) {
	share, ok := BranchShare(t)
	return 100 * share, ok
}

// BranchesLeft is how many branch ENIs can still be created; nil if unknown.
func BranchesLeft(t document.TrunkItem) *int {
	if t.BranchUsed == nil || t.BranchLimit == nil {
		return nil
	}
	left := max(*t.BranchLimit-*t.BranchUsed, 0)
	return &left
}

// WithBranchPods adds what the pods of the node show. The controller deletes branch ENIs some time after
// their pods and does not report that: those in use without a pod are cooling, or their pod has
// not been annotated yet.
func WithBranchPods(t document.TrunkItem, pods []watch.Pod, ipv6 bool) document.TrunkItem {
	waiting, with := SplitBranchPods(pods)
	t.Pods = make([]document.BranchPod, 0, len(waiting)+len(with))
	for _, p := range waiting {
		t.Pods = append(t.Pods, WaitingBranchPod(p))
	}
	for _, p := range with {
		t.Pods = append(t.Pods, branch(p, ipv6))
	}
	n := len(waiting)
	t.Waiting = &n
	if t.BranchUsed != nil {
		cooling := max(*t.BranchUsed-len(with), 0)
		t.Cooling = &cooling
	}
	return t
}

// SelectBranchPods keeps the pods of the chosen namespaces. Branch ENIs stay those of all pods.
func SelectBranchPods(t document.TrunkItem, chosen func(namespace string) bool) document.TrunkItem {
	t.Pods = slices.DeleteFunc(slices.Clone(t.Pods), func(p document.BranchPod) bool { return !chosen(p.Namespace) })
	waiting := 0
	for _, p := range t.Pods {
		if p.Waiting {
			waiting++
		}
	}
	t.Waiting = &waiting
	return t
}

// SplitBranchPods separates pods that wait for a branch ENI from those that have one.
func SplitBranchPods(all []watch.Pod) (waiting, with []watch.Pod) {
	for _, p := range all {
		switch {
		case p.PodENI != "":
			with = append(with, p)
		case p.Wants && p.Phase != "Succeeded" && p.Phase != "Failed":
			waiting = append(waiting, p)
		}
	}
	return waiting, with
}

// WaitingBranchPod returns a pod that has no branch ENI yet.
func WaitingBranchPod(p watch.Pod) document.BranchPod {
	return document.BranchPod{PodRef: p.PodRef, Waiting: true, Phase: p.Phase, Reason: p.Reason, Since: p.StartedAt}
}

// branch returns a pod with its branch ENI, from its annotation.
func branch(p watch.Pod, ipv6 bool) document.BranchPod {
	out := document.BranchPod{PodRef: p.PodRef, Phase: p.Phase, Reason: p.Reason, Since: p.StartedAt}
	b, err := cluster.ParseBranch(p.PodENI, ipv6)
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	out.VLAN, out.ENIID, out.Address = &b.VLAN, b.ENI, b.Address.String()
	return out
}
