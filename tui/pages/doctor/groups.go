package doctor

import (
	"slices"
	"strings"

	"cnictl/daemon/fleet/causes"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/evidence"
	"cnictl/tui/pages"
)

// scope is the nodes that are looked at.
type scope struct {
	title string
	in    func(*store.Node) bool
	asked evidence.Scope // of the doctor
}

var everywhere = scope{"all nodes", func(*store.Node) bool { return true }, evidence.Scope{Cluster: true}}

func scopeOf(o pages.Open) scope {
	cluster := everywhere.asked
	switch {
	case o.Node != "":
		s := scope{show.Safe(o.Node), func(n *store.Node) bool { return n.Metadata.Name == o.Node }, evidence.Scope{Node: o.Node}}
		if o.Pod != "" {
			s.title, s.asked = "pod "+show.Safe(o.Pod), evidence.Scope{Pod: evidence.Pod(o.Pod)}
		}
		return s
	case o.Nodes != "":
		names := strings.Split(o.Nodes, ",")
		slices.Sort(names)
		return scope{show.Plural(len(names), "selected node", "selected nodes"), func(n *store.Node) bool {
			_, found := slices.BinarySearch(names, n.Metadata.Name)
			return found
		}, cluster}
	case o.Filter != "":
		filter, err := query.Parse(o.Filter, query.Options[*store.Node]{Columns: store.NodeColumns(), Label: (*store.Node).Label})
		if err == nil {
			return scope{"filter " + show.Safe(o.Filter), filter.Match, cluster}
		}
	}
	return everywhere
}

// of is the scope with the names of its nodes, for the doctor; false: there is none.
func (s scope) of(v *store.View) (asked evidence.Scope, nodes []string, ok bool) {
	if s.title == everywhere.title {
		return s.asked, nil, true
	}
	if v != nil {
		for _, n := range v.Nodes {
			if s.in(n) {
				nodes = append(nodes, n.Metadata.Name)
			}
		}
	}
	return s.asked, nodes, len(nodes) > 0
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
