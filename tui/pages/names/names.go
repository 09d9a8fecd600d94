package names

import (
	"strings"

	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
)

// Nodes writes the names of nodes without their common domain, where a table is narrow.
type Nodes struct{ domain string }

// Learn takes the names that there are now.
func (n *Nodes) Learn(nodes []*store.Node) {
	n.domain = show.Domain(func(yield func(string) bool) {
		for _, node := range nodes {
			if !yield(node.Metadata.Name) {
				return
			}
		}
	})
}

// Short is a name as a table shows it.
func (n *Nodes) Short(name string) string { return show.Safe(strings.TrimSuffix(name, n.domain)) }

// Cell is the name for the column of nodes of a table; false: it is another column.
func (n *Nodes) Cell(name, column string) (string, bool) {
	if column != "node" {
		return "", false
	}
	return n.Short(name), true
}

// Host is the first label of a node's name; an address stays as it is.
func Host(name string) string {
	host, _, _ := strings.Cut(name, ".")
	if host == "" || strings.Trim(host, "0123456789") == "" {
		return name
	}
	return host
}
