package doctor

import (
	"slices"

	"cnictl/daemon/fleet/causes"
	"cnictl/daemon/fleet/store"
)

// group is one cause with the nodes that report it, affected one of these nodes.
type (
	group    = causes.Group[*store.Node]
	affected = causes.Affected[*store.Node]
)

// groupsOf sorts what nodes report by cause, worst and most frequent first. only is the
// one node to look at, "" = all.
func groupsOf(v *store.View, only string) []*group {
	if v == nil {
		return nil
	}
	nodes := v.Nodes
	if only != "" {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *store.Node) bool { return n.Metadata.Name != only })
	}
	return causes.Groups(nodes, func(n *store.Node) causes.Report { return causes.ReportOf(n.NodeIPAM, n.Problems) })
}
