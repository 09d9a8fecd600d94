package tables

import (
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Trunks returns the columns of nodes with branch ENIs.
func Trunks() []query.Column[document.TrunkItem] {
	type row = document.TrunkItem
	text, number := query.Words[row], query.Count[row]
	raw := func(r row) string { return r.State }
	return []query.Column[row]{
		plain("node", "NODE", "name of the node", func(r row) string { return r.Node }),
		text("type", "TYPE", "instance type", 3, func(r row) string { return r.InstanceType }),
		wide(text("zone", "ZONE", "availability zone", 5, func(r row) string { return r.Zone })),
		{Name: "state", Header: "STATE",
			Title: "attached, pending, unsupported (by the type), off (a trunk without ENABLE_POD_ENI), not reported (by upstream)",
			Text:  func(r row) string { return TrunkState(r.State) }, Also: raw, CSV: []query.Column[row]{text("state", "STATE", "", 0, raw)}},
		{Name: "used", Header: "BRANCHES", Title: "branch ENIs in use, of those the type can have; filters and orders take the percentage",
			Right: true, Text: func(r row) string { return show.Int(r.BranchUsed) + "/" + show.Int(r.BranchLimit) }, Number: inventory.BranchPercent,
			CSV: []query.Column[row]{
				number("used", "BRANCHES", "", 0, func(r row) *int { return r.BranchUsed }),
				number("limit", "BRANCH LIMIT", "", 0, func(r row) *int { return r.BranchLimit }),
			}},
		number("left", "LEFT", "branch ENIs that can still be created", 2, inventory.BranchesLeft).Headed("ROOM"),
		number("cooling", "COOLING", "branch ENIs still in use by pods that are gone", 4, func(r row) *int { return r.Cooling }),
		number("waiting", "WAITING", "pods that request vpc.amazonaws.com/pod-eni and have no branch ENI", 1,
			func(r row) *int { return r.Waiting }),
		text("trunk", "TRUNK", "the trunk network interface", 6, func(r row) string { return r.ENIID }),
		wide(number("advertised", "ADVERTISED", "capacity of vpc.amazonaws.com/pod-eni on the Node object", 7,
			func(r row) *int { return r.Advertised })),
		wide(text("pods", "WAITING PODS", "pods without a branch ENI", 0, waitingPods)),
	}
}

// TrunkState is the state of a trunk for people; documents and filters use the raw state.
func TrunkState(state string) string {
	switch state {
	case document.TrunkPending:
		return "pending"
	case document.TrunkNotReported:
		return "not reported"
	}
	return state
}

// waitingPods names the waiting pods.
func waitingPods(r document.TrunkItem) string {
	var names []string
	for _, p := range r.Pods {
		if p.Waiting {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return strings.Join(names, ",")
}
