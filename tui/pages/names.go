package pages

import (
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/show"
)

// NodeNames shortens the names of nodes by their common domain, to save width.
type NodeNames struct{ domain string }

// Learn finds the common domain of the current nodes.
func (n *NodeNames) Learn(nodes []*store.Node) {
	n.domain = show.Domain(func(yield func(string) bool) {
		for _, node := range nodes {
			if !yield(node.Metadata.Name) {
				return
			}
		}
	})
}

// Short returns a name as a table shows it.
func (n *NodeNames) Short(name string) string { return show.Safe(strings.TrimSuffix(name, n.domain)) }

// Cell returns the short name if column is the node column of a table, else false.
func (n *NodeNames) Cell(name, column string) (string, bool) {
	if column != "node" {
		return "", false
	}
	return n.Short(name), true
}

// Host returns the first label of a node's name. An address is returned unchanged.
func Host(name string) string {
	host, _, _ := strings.Cut(name, ".")
	if host == "" || strings.Trim(host, "0123456789") == "" {
		return name
	}
	return host
}

// PodName returns namespace/name, safe to print; "" without a name.
func PodName(namespace, name string) string {
	switch {
	case name == "":
		return ""
	case namespace == "":
		return show.Safe(name)
	}
	return show.Safe(namespace) + "/" + show.Safe(name)
}

// SplitPod splits namespace/name.
func SplitPod(s string) introspect.PodRef {
	namespace, name, ok := strings.Cut(s, "/")
	if !ok {
		return introspect.PodRef{Name: s}
	}
	return introspect.PodRef{Namespace: namespace, Name: name}
}
