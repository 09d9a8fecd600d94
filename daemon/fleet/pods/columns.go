package pods

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// byUrgency lists the states of a pod's address, those that need attention first.
var byUrgency = []string{
	document.PodWaiting, document.PodUnknown, document.PodLeftOver, document.PodHasAddress,
	document.PodBranch, document.PodHostNetwork, document.PodEnded,
}

// Columns returns the columns of a node's pods; with several, those for pods of several nodes,
// which add the node and always show the kind of address.
func Columns(several bool) []query.Column[*Row] {
	columns := []query.Column[*Row]{
		{Name: "pod", Header: "POD", Title: "NAMESPACE/NAME of the pod", Least: 20, Text: func(r *Row) string { return show.Safe(show.OrUnknown(r.full)) }},
		{Name: "node", Header: "NODE", Title: "its node", Drop: 1, Text: func(r *Row) string { return show.Safe(show.OrUnknown(r.Node)) }},
		{Name: "kind", Header: "KIND", Title: "where its address comes from: secondary, prefix, branch, host", Drop: 3, Named: !several, Text: Kind},
		{Name: "namespace", Header: "NAMESPACE", Title: "its namespace", Named: true, Text: func(r *Row) string { return show.Safe(show.OrUnknown(r.Namespace)) }},
		{Name: "state", Header: "STATE", Title: "assigned, branch, host-network, ended; waiting (without an address), unknown (to the daemon), left-over (of a pod that is gone)",
			Text: func(r *Row) string { return r.State }, Rank: func(r *Row) int { return slices.Index(byUrgency, r.State) }},
		{Name: "address", Header: "ADDRESS", Title: "address of the pod", Text: func(r *Row) string { return show.Safe(show.OrUnknown(r.Address)) }},
		{Name: "for", Header: "FOR", Title: "time since it got the address, or started without one", Unit: "SECONDS", Right: true, Drop: 3,
			Text: func(r *Row) string { return show.Since(r.Since, r.At) }, Number: seconds},
		{Name: "eni", Header: "ENI", Title: "ENI that holds the address", Drop: 1, Text: func(r *Row) string { return show.Safe(show.OrUnknown(r.ENIID)) }},
		{Name: "device", Header: "DEVICE", Title: "device index of the ENI", Right: true, Drop: 2,
			Text: func(r *Row) string { return show.Int(r.Device) }, Number: func(r *Row) (float64, bool) { return query.Number(r.Device) }},
		{Name: "why", Header: "WHY", Title: "why it has no address, or what is inconsistent", Least: 16, Empty: true, Text: func(r *Row) string { return show.Safe(Named(r.Reason, r.waited())) },
			CSV: []query.Column[*Row]{{Name: "why", Header: "WHY", Text: func(r *Row) string { return show.Safe(r.Reason) }}}},
		// Behind WHY, as CSV had the columns before these two in this order.
		{Name: "phase", Header: "PHASE", Title: "phase in Kubernetes", Wide: true, Text: func(r *Row) string { return show.Safe(show.OrUnknown(r.Phase)) }},
		{Name: "subnet", Header: "SUBNET", Title: "subnet of the ENI", Wide: true, Text: func(r *Row) string { return show.Safe(show.OrUnknown(r.SubnetID)) }},
	}
	if !several {
		columns = slices.Delete(columns, 1, 2)
	}
	return columns
}

func seconds(r *Row) (float64, bool) {
	if show.Since(r.Since, r.At) == show.Unknown {
		return 0, false
	}
	return r.At.Sub(*r.Since).Truncate(time.Second).Seconds(), true
}

// Kind says in one word where a pod's address comes from.
func Kind(r *Row) string {
	switch {
	case r.CIDR.IsValid() && r.CIDR.IsSingleIP():
		return "secondary"
	case r.CIDR.IsValid():
		return "prefix"
	case r.State == document.PodBranch:
		return "branch"
	case r.State == document.PodHostNetwork:
		return "host"
	}
	return show.Unknown
}

// Fault reports whether the row needs attention.
func Fault(r *Row) bool {
	switch r.State {
	case document.PodWaiting, document.PodUnknown, document.PodLeftOver:
		return true
	}
	return strings.HasPrefix(r.Reason, "Kubernetes reports")
}
