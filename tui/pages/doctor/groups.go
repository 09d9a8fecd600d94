package doctor

import (
	"slices"

	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/evidence"
	"cnictl/tui/pages"
)

// scope is the set of nodes on the screen.
type scope struct {
	title string
	in    func(*store.Node) bool
	asked evidence.Scope // the scope that the doctor is asked for
}

var everywhere = scope{pages.Everywhere, func(*store.Node) bool { return true }, evidence.Scope{Cluster: true}}

func scopeOf(o pages.Open) scope {
	s := scope{asked: everywhere.asked}
	s.title, s.in = o.Scope()
	switch {
	case o.Node != "" && o.Pod != "":
		s.title, s.asked = "pod "+o.Pod, evidence.Scope{Pod: evidence.Pod(o.Pod)}
	case o.Node != "":
		s.asked = evidence.Scope{Node: o.Node}
	}
	return s
}

// of returns the doctor's scope and the names of its nodes; nil names are all nodes. ok is
// false if the scope contains no node.
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

// group is a cause with the nodes that report it; affected is one of these nodes.
type (
	group    = inventory.Cause[*store.Node]
	affected = inventory.Affected[*store.Node]
)

// groupsOf groups the reports of the nodes that in selects by cause, worst and most
// frequent first.
func groupsOf(v *store.View, in func(*store.Node) bool) []*group {
	if v == nil {
		return nil
	}
	nodes := slices.DeleteFunc(slices.Clone(v.Nodes), func(n *store.Node) bool { return !in(n) })
	return inventory.Causes(nodes, func(n *store.Node) inventory.NodeReport { return inventory.ReportOf(n).Found() })
}

// affectedBy returns the nodes of a finding, with what they report about it.
func affectedBy(r *row, v *store.View) (out []*affected) {
	if r.group != nil {
		out = slices.Clone(r.group.Nodes)
	}
	if r.finding == nil || v == nil {
		return out
	}
	for _, name := range r.finding.Nodes {
		n := v.Node(name)
		if n != nil && !slices.ContainsFunc(out, func(a *affected) bool { return a.Name == name }) {
			out = append(out, &affected{Name: name, Node: n, Severity: r.severity()})
		}
	}
	return out
}
