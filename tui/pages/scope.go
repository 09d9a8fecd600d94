package pages

import (
	"slices"
	"strings"

	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/tables"
)

// Everywhere is the title of a scope of all nodes.
const Everywhere = "all nodes"

// Scope returns the nodes that a screen is opened for, with a title.
func (o Open) Scope() (title string, in func(*store.Node) bool) {
	switch {
	case o.Node != "":
		return o.Node, func(n *store.Node) bool { return n.Metadata.Name == o.Node }
	case o.Nodes != "":
		names := strings.Split(o.Nodes, ",")
		slices.Sort(names)
		return human.Plural(len(names), "selected node", "selected nodes"), func(n *store.Node) bool {
			_, found := slices.BinarySearch(names, n.Metadata.Name)
			return found
		}
	case o.Filter != "":
		filter, err := query.Parse(o.Filter, query.Options[*store.Node]{Columns: tables.Nodes(), Label: (*store.Node).Label})
		if err == nil {
			return "filter " + o.Filter, filter.Match
		}
	}
	return Everywhere, func(*store.Node) bool { return true }
}
