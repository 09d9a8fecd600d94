package trunks

import (
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

type row = document.TrunkItem

// Columns returns the columns of nodes with branch ENIs, for cnictl trunks and the screen.
func Columns() []query.Column[row] {
	text, number := query.Words[row], query.Count[row]
	wide := func(c query.Column[row]) query.Column[row] { c.Wide = true; return c }
	room := number("left", "ROOM", "branch ENIs that can still be created", 2, Left)
	room.CSV = []query.Column[row]{number("left", "LEFT", "", 0, Left)}
	return []query.Column[row]{
		{Name: "node", Header: "NODE", Title: "name of the node", Text: func(r row) string { return show.Safe(r.Node) }},
		text("type", "TYPE", "instance type", 3, func(r row) string { return r.InstanceType }),
		wide(text("zone", "ZONE", "availability zone", 5, func(r row) string { return r.Zone })),
		{Name: "state", Header: "STATE", Title: "attached, pending, unsupported (by the type), off (a trunk without ENABLE_POD_ENI), not reported (by upstream)",
			Text: func(r row) string { return State(r.State) }, Also: state, CSV: []query.Column[row]{text("state", "STATE", "", 0, state)}},
		{Name: "used", Header: "BRANCHES", Title: "branch ENIs in use, of those the type can have; filters and orders take the percentage", Right: true, CSV: []query.Column[row]{
			number("used", "BRANCHES", "", 0, func(r row) *int { return r.BranchUsed }), number("limit", "BRANCH LIMIT", "", 0, func(r row) *int { return r.BranchLimit }),
		}, Text: func(r row) string { return show.Int(r.BranchUsed) + "/" + show.Int(r.BranchLimit) }, Number: Percent},
		room,
		number("cooling", "COOLING", "branch ENIs still in use by pods that are gone", 4, func(r row) *int { return r.Cooling }),
		number("waiting", "WAITING", "pods that request vpc.amazonaws.com/pod-eni and have no branch ENI", 1, func(r row) *int { return r.Waiting }),
		text("trunk", "TRUNK", "the trunk network interface", 6, func(r row) string { return r.ENIID }),
		wide(number("advertised", "ADVERTISED", "capacity of vpc.amazonaws.com/pod-eni on the Node object", 7, func(r row) *int { return r.Advertised })),
		wide(text("pods", "WAITING PODS", "pods without a branch ENI", 0, waitingPods)),
	}
}

func state(r row) string { return r.State }

// State is the state of a trunk for people; documents and filters use the raw state.
func State(state string) string {
	switch state {
	case document.TrunkPending:
		return "pending"
	case document.TrunkNotReported:
		return "not reported"
	}
	return show.Safe(state)
}

// waitingPods names the waiting pods.
func waitingPods(r row) string {
	var names []string
	for _, p := range r.Pods {
		if p.Waiting {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return strings.Join(names, ",")
}
