package doctor

import (
	"slices"
	"strings"

	"cnictl/daemon/fleet/causes"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/pages"
)

// scope is the nodes that are looked at.
type scope struct {
	title string
	in    func(*store.Node) bool
}

var everywhere = scope{"all nodes", func(*store.Node) bool { return true }}

func scopeOf(o pages.Open) scope {
	switch {
	case o.Node != "":
		return scope{show.Safe(o.Node), func(n *store.Node) bool { return n.Metadata.Name == o.Node }}
	case o.Nodes != "":
		names := strings.Split(o.Nodes, ",")
		slices.Sort(names)
		return scope{show.Plural(len(names), "selected node", "selected nodes"), func(n *store.Node) bool {
			_, found := slices.BinarySearch(names, n.Metadata.Name)
			return found
		}}
	case o.Filter != "":
		filter, err := query.Parse(o.Filter, query.Options[*store.Node]{Columns: store.NodeColumns(), Label: (*store.Node).Label})
		if err == nil {
			return scope{"filter " + show.Safe(o.Filter), filter.Match}
		}
	}
	return everywhere
}

// group is one cause with the nodes that report it, affected one of these nodes.
type (
	group    = causes.Group[*store.Node]
	affected = causes.Affected[*store.Node]
)

// groupsOf sorts what nodes report by cause, worst and most frequent first. in chooses the
// nodes to look at.
func groupsOf(v *store.View, in func(*store.Node) bool) []*group {
	if v == nil {
		return nil
	}
	nodes := slices.DeleteFunc(slices.Clone(v.Nodes), func(n *store.Node) bool { return !in(n) })
	return causes.Groups(nodes, func(n *store.Node) causes.Report { return causes.ReportOf(n.NodeIPAM, n.Problems) })
}
