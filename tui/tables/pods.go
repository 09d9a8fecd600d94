package tables

import (
	"slices"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// byUrgency lists the states of a pod's address, those that need attention first.
var byUrgency = []string{
	document.PodWaiting, document.PodUnknown, document.PodLeftOver, document.PodHasAddress,
	document.PodBranch, document.PodHostNetwork, document.PodEnded,
}

// Pods returns the columns of a node's pods; with several, those for pods of several nodes,
// which add the node and always show the kind of address.
func Pods(several bool) []query.Column[*inventory.Pod] {
	type row = *inventory.Pod
	text := query.Words[row]
	pod := text("pod", "POD", "NAMESPACE/NAME of the pod", 0, func(r row) string { return r.Full })
	pod.Least = 20
	columns := []query.Column[row]{
		pod,
		text("node", "NODE", "its node", 1, func(r row) string { return r.Node }),
		{Name: "kind", Header: "KIND", Title: "where its address comes from: secondary, prefix, branch, host",
			Drop: 3, Named: !several, Text: func(r row) string { return show.OrUnknown(inventory.PodKind(r)) }},
		{Name: "namespace", Header: "NAMESPACE", Title: "its namespace", Named: true,
			Text: func(r row) string { return show.OrUnknown(r.Namespace) }},
		{Name: "state", Header: "STATE",
			Title: "assigned, branch, host-network, ended; waiting (without an address), unknown (to the daemon), left-over (of a pod that is gone)",
			Text:  func(r row) string { return r.State }, Rank: func(r row) int { return slices.Index(byUrgency, r.State) }},
		text("address", "ADDRESS", "address of the pod", 0, func(r row) string { return r.Address }),
		{Name: "for", Header: "FOR", Title: "time since it got the address, or started without one", Unit: "SECONDS", Right: true, Drop: 3,
			Text: func(r row) string { return show.Since(r.Since, r.At) }, Number: podSeconds},
		text("eni", "ENI", "ENI that holds the address", 2, func(r row) string { return r.ENIID }),
		query.Count("device", "DEVICE", "device index of the ENI", 4, func(r row) *int { return r.Device }),
		{Name: "why", Header: "WHY", Title: "why it has no address, or what is inconsistent", Least: 16, Empty: true,
			Text: func(r row) string { return inventory.NamedReason(r.Reason) },
			CSV:  []query.Column[row]{{Name: "why", Header: "WHY", Text: func(r row) string { return r.Reason }}}},
		// Behind WHY, as CSV had the columns before these two in this order.
		wide(text("phase", "PHASE", "phase in Kubernetes", 0, func(r row) string { return r.Phase })),
		wide(text("subnet", "SUBNET", "subnet of the ENI", 0, func(r row) string { return r.SubnetID })),
	}
	if !several {
		columns = slices.Delete(columns, 1, 2)
	}
	return columns
}

func podSeconds(r *inventory.Pod) (float64, bool) {
	if show.Since(r.Since, r.At) == show.Unknown {
		return 0, false
	}
	return r.At.Sub(*r.Since).Truncate(time.Second).Seconds(), true
}
