// Package pods joins what Kubernetes and a daemon tell of the pods of a node. It is pure.
package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/watch"
)

// Sides are what is known of the pods of a node.
type Sides struct {
	Pods     []watch.Pod // of Kubernetes
	Listed   bool        // Kubernetes was asked, and answered
	ENIs     []introspect.NodeENI
	Asked    bool // the daemon told its addresses
	Failures []introspect.Failure
	Blocked  []introspect.BlockedCard
}

// holding is an address that the daemon gave.
type holding struct {
	address introspect.NodeAddress
	eni     introspect.NodeENI
}

// Join puts the two sides together, by namespace and name: which pods have an
// address, which have none and why, which addresses are held for pods that are gone.
func Join(in Sides) []introspect.NodePodItem {
	held := map[introspect.PodRef][]holding{}
	for _, e := range in.ENIs {
		for _, c := range e.CIDRs {
			for _, a := range c.Addresses {
				if a.State == introspect.AddressAssigned {
					ref := introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName}
					held[ref] = append(held[ref], holding{a, e})
				}
			}
		}
	}
	items := []introspect.NodePodItem{}
	for _, p := range in.Pods {
		items = append(items, joined(in, p, held[p.PodRef])...)
		delete(held, p.PodRef)
	}
	for ref, all := range held {
		for _, h := range all {
			item := itemOf(ref, h)
			if in.Listed && ref.Name != "" {
				item.State, item.Reason = introspect.PodLeftOver, "Kubernetes has no such pod on the node: a DEL that did not come, or is on its way"
			}
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b introspect.NodePodItem) int {
		return cmp.Or(query.Natural(a.Namespace, b.Namespace), query.Natural(a.Name, b.Name), query.Natural(a.Address, b.Address))
	})
	return items
}

func itemOf(ref introspect.PodRef, h holding) introspect.NodePodItem {
	device := h.eni.Device
	return introspect.NodePodItem{
		PodRef: ref, State: introspect.PodHasAddress, Address: h.address.Address.String(),
		ENIID: h.eni.ID, Device: &device, SubnetID: h.eni.SubnetID, Since: h.address.AssignedAt,
	}
}

// joined says a pod of Kubernetes with what the daemon holds for it: an item for each
// address.
func joined(in Sides, p watch.Pod, held []holding) []introspect.NodePodItem {
	if len(held) > 0 {
		var items []introspect.NodePodItem
		for _, h := range held {
			item := itemOf(p.PodRef, h)
			item.Phase = p.Phase
			if len(p.IPs) > 0 && len(held) == 1 && !slices.Contains(p.IPs, item.Address) {
				item.Reason = "Kubernetes says " + strings.Join(p.IPs, ", ")
			}
			items = append(items, item)
		}
		return items
	}
	item := introspect.NodePodItem{PodRef: p.PodRef, Phase: p.Phase, Address: strings.Join(p.IPs, ","), Since: p.StartedAt}
	item.State, item.Reason = stateWithout(in, p)
	if item.State == introspect.PodWaiting || item.State == introspect.PodEnded {
		item.Address = ""
	}
	return []introspect.NodePodItem{item}
}

// stateWithout says how a pod stands that the daemon holds nothing for.
func stateWithout(in Sides, p watch.Pod) (state, reason string) {
	switch {
	case p.HostNetwork:
		return introspect.PodHostNetwork, ""
	case p.Phase == "Succeeded" || p.Phase == "Failed":
		return introspect.PodEnded, ""
	case p.PodENI != "":
		return introspect.PodBranch, ""
	case p.Wants:
		return introspect.PodWaiting, "it asks for a branch ENI, and the VPC resource controller has not annotated it yet"
	case !in.Asked:
		if len(p.IPs) > 0 {
			return introspect.PodHasAddress, "the daemon could not be asked"
		}
		return introspect.PodWaiting, cmp.Or(p.Reason, "the daemon could not be asked")
	case len(p.IPs) > 0:
		return introspect.PodUnknown, "the daemon holds no address for it"
	}
	return introspect.PodWaiting, WhyNone(in.Failures, in.Blocked, p)
}

// WhyNone says why a pod that should have an address has none: its last failed ADD, what
// blocks the pool, what Kubernetes tells of it.
func WhyNone(failures []introspect.Failure, blocked []introspect.BlockedCard, p watch.Pod) string {
	for _, failure := range failures { // newest first
		if failure.Pod == p.PodRef {
			return fmt.Sprintf("%s: %s", failure.Cause, cmp.Or(failure.Detail, failure.Title))
		}
	}
	if len(blocked) > 0 {
		return fmt.Sprintf("%s: %s", blocked[0].Cause, blocked[0].Message)
	}
	return cmp.Or(p.Reason, "no ADD came for it yet")
}
