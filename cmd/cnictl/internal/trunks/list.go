package trunks

import (
	"strings"

	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/trunks"
)

type row = introspect.TrunkItem

// newList is the list of nodes: the columns are named as those of the screen.
func newList() *output.List[row] {
	return &output.List[row]{
		Columns: columns(), Class: class, Free: "pods",
		Key: func(r row) string { return r.Node }, Whole: true,
		Item: func(r row) any { return r },
	}
}

func columns() []query.Column[row] {
	text, number := query.Words[row], query.Count[row]
	wide := func(c query.Column[row]) query.Column[row] { c.Wide = true; return c }
	return []query.Column[row]{
		{Name: "node", Header: "NODE", Title: "name of the node", Text: func(r row) string { return show.Safe(r.Node) }},
		text("type", "TYPE", "instance type", 3, func(r row) string { return r.InstanceType }),
		wide(text("zone", "ZONE", "availability zone", 5, func(r row) string { return r.Zone })),
		text("state", "STATE", "attached, awaited, unsupported (by the type), off (a trunk without ENABLE_POD_ENI), not-told (upstream does not report it)", 0, func(r row) string { return r.State }),
		{Name: "used", Header: "BRANCHES", Title: "branch ENIs in use, of those the type can have; filters and orders take the percentage", Right: true, CSV: []query.Column[row]{
			number("used", "BRANCHES", "", 0, func(r row) *int { return r.BranchUsed }), number("limit", "BRANCH LIMIT", "", 0, func(r row) *int { return r.BranchLimit }),
		}, Text: func(r row) string { return show.Int(r.BranchUsed) + "/" + show.Int(r.BranchLimit) }, Number: trunks.Percent},
		number("left", "LEFT", "branch ENIs that can still be created", 2, trunks.Left),
		number("cooling", "COOLING", "branch ENIs still in use by pods that are gone", 4, func(r row) *int { return r.Cooling }),
		number("waiting", "WAITING", "pods that request vpc.amazonaws.com/pod-eni and have no branch ENI", 1, func(r row) *int { return r.Waiting }),
		text("trunk", "TRUNK", "the trunk network interface", 6, func(r row) string { return r.ENIID }),
		wide(number("advertised", "ADVERTISED", "capacity of vpc.amazonaws.com/pod-eni on the Node object", 7, func(r row) *int { return r.Advertised })),
		wide(text("pods", "WAITING PODS", "pods without a branch ENI", 0, waiting)),
	}
}

// waiting names the pods that wait.
func waiting(r row) string {
	var names []string
	for _, p := range r.Pods {
		if p.Waiting {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return strings.Join(names, ",")
}

// class colours what a cell means.
func class(r row, column string) paint.Class {
	taken, known := trunks.Share(r)
	switch {
	case column == "state" && r.State == introspect.TrunkAttached:
		return paint.OK
	case column == "state", column == "waiting" && r.Waiting != nil && *r.Waiting > 0:
		return paint.Warn
	case (column == "used" || column == "left") && known && taken >= 1:
		return paint.Bad
	case column == "trunk", column == "type":
		return paint.Dim
	}
	return paint.Plain
}
